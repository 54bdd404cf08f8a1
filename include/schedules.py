"""Schedules as an installation sets them in `config/schedules.yaml`, over those that are declared.

Promises: one file rules Airflow's timetables, the engine's windows and the command line alike; it is read once in a
process, and what cannot be is refused in words that name the entry. A session date is still told by the market's own
day, whatever zone a schedule is set in. Never: no database, no clock, and nothing is read where there is no file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from include.contract import Source, Stream
from include.settings import ROOT, SettingError

FILE = ROOT / "config" / "schedules.yaml"
_SECTIONS = ("streams", "jobs")


@dataclass(frozen=True)
class Times:
    """When something runs: a cron expression in a zone; `is_set` where this installation set it."""

    cron: str
    timezone: str
    is_set: bool = False


@dataclass(frozen=True)
class Overrides:
    """What the file sets, for streams and for jobs, each by name."""

    streams: Mapping[str, Times] = field(default_factory=dict)
    jobs: Mapping[str, Times] = field(default_factory=dict)


@cache
def read(path: Path = FILE) -> Overrides:
    """Read the file; nothing is set where there is none.

    Raises:
        SettingError: it cannot be read, or an entry is no schedule; the text names it.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return Overrides()
    except OSError as error:
        raise SettingError(f"{path.name} cannot be read ({error.strerror}). Mend the file.") from None
    # Imported here: nothing else that a DAG file needs reads YAML.
    import yaml

    try:
        data = yaml.safe_load(text) or {}
    except yaml.YAMLError as error:
        raise SettingError(f"{path.name} is not YAML: {' '.join(str(error).split())}. Mend the file.") from None
    if not isinstance(data, dict) or not set(data) <= set(_SECTIONS):
        raise SettingError(f"{path.name} has the sections {' and '.join(_SECTIONS)} and nothing else. Mend the file.")
    found: dict[str, dict[str, Times]] = {section: {} for section in _SECTIONS}
    for section in _SECTIONS:
        entries = data.get(section) or {}
        for name, entry in entries.items() if isinstance(entries, dict) else [("?", entries)]:
            found[section][str(name)] = _times(f"{path.name}: {section}.{name}", entry)
    return Overrides(found["streams"], found["jobs"])


def _times(place: str, entry: Any) -> Times:
    from croniter import croniter

    example = '{cron: "35 18 * * 1-5", timezone: America/New_York}'
    if not isinstance(entry, dict) or set(entry) != {"cron", "timezone"}:
        raise SettingError(f"{place} must be like {example}, not {entry!r}.")
    crons, zone = [" ".join(each.split()) for each in str(entry["cron"]).split("|")], str(entry["timezone"])
    cron = " | ".join(crons)
    if not all(len(each.split()) == 5 and croniter.is_valid(each) for each in crons):
        raise SettingError(
            f"{place}: {cron!r} is no cron expression of five fields (minute hour day month weekday). Write {example}."
        )
    try:
        ZoneInfo(zone)
    except (KeyError, ValueError, OSError):
        raise SettingError(f"{place}: there is no time zone {zone!r}; write one like America/New_York.") from None
    return Times(cron, zone, is_set=True)


def applied(sources: Iterable[Source], overrides: Overrides, others: Iterable[str]) -> tuple[Source, ...]:
    """Return the sources with their streams' schedules as set.

    Args:
        sources: as declared.
        overrides: what the file sets; a stream's own entry goes before its job's.
        others: names of jobs that collect for no source, which the file may set too.

    Raises:
        SettingError: nothing has such a name, or the streams of one job would run at different times.
    """
    declared = tuple(sources)
    streams = [stream for source in declared for stream in source.streams]
    _check_names("streams", overrides.streams, {stream.name for stream in streams})
    _check_names("jobs", overrides.jobs, {*(stream.job_name for stream in streams), *others})
    found = tuple(
        replace(source, streams=tuple(_set(stream, overrides) for stream in source.streams)) for source in declared
    )
    times: dict[str, dict[str, str]] = {}
    for stream in (stream for source in found for stream in source.streams):
        when = f"{stream.schedule.cron} in {stream.schedule.timezone}"
        times.setdefault(stream.job_name, {}).setdefault(when, stream.name)
    for job, each in times.items():
        if len(each) > 1:
            said = "; ".join(f"{name}: {when}" for when, name in each.items())
            raise SettingError(
                f"{FILE.name}: the streams of the job {job} would run at different times ({said}), and one DAG runs "
                f"them all. Set jobs.{job} in place of the stream."
            )
    return found


def _check_names(section: str, entries: Iterable[str], known: set[str]) -> None:
    unknown = sorted(set(entries) - known)
    if unknown:
        raise SettingError(
            f"{FILE.name}: {section} has {', '.join(unknown)}, which nothing is called; there are "
            f"{', '.join(sorted(known))}."
        )


def _set(stream: Stream, overrides: Overrides) -> Stream:
    times = overrides.streams.get(stream.name) or overrides.jobs.get(stream.job_name)
    if times is None:
        return stream
    schedule = stream.schedule
    return replace(
        stream,
        schedule=replace(
            schedule, cron=times.cron, timezone=times.timezone, market_timezone=schedule.day_zone, is_set=True
        ),
    )


SYSTEM_JOBS = frozenset(
    {"dispatch", "sla_capture", "upkeep", "maintenance", "audit", "prebuild", "analysis", "dart_new_stocks"}
)
"""Jobs that have no windows; the file may set them by these names."""


def of_job(name: str, cron: str, timezone: str) -> Times:
    """Return when a job of the system runs: as set, or as given.

    Raises:
        SettingError: the file cannot be used.
        ValueError: the job is none of `SYSTEM_JOBS`.
    """
    if name not in SYSTEM_JOBS:
        raise ValueError(f"{name} is none of the system's jobs; name it in SYSTEM_JOBS, so that it can be set.")
    return read().jobs.get(name) or Times(cron, timezone)
