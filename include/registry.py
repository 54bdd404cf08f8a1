"""Every source, one line each, in the order in which they are shown.

`SOURCES` is what is declared; everybody asks the functions, which give it as this installation runs it: with the
schedules of `config/schedules.yaml`. A source whose list of what to collect is configuration is handed that list.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from include import schedules, settings
from include.bodies import Reading
from include.contract import Source, Stream
from include.sources import alpaca, dart, ecos, edgar, finra, fred, kind, krx, sec


class ListUnfit(Exception):
    """A list in `config/` cannot be read; the text names the file and says why."""


def _listed(name: str) -> Any:
    import yaml

    file = Path(__file__).resolve().parent.parent / "config" / name
    try:
        return yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise ListUnfit(f"config/{name} cannot be read: {' '.join(str(error).split())}. Mend the file.") from None


def _some(groups: Any, names: tuple[str, ...], setting: str) -> Any:
    """Keep the groups that a setting names, all where it names none; a name that is not there is refused."""
    if not names:
        return groups
    for name in names:
        if name not in groups:
            raise settings.SettingError(f"{setting} names {name!r}; there are {', '.join(groups)}.")
    return {name: groups[name] for name in names}


def sync_settings() -> settings.SyncSettings:
    """Return how DART's reports are kept, as this installation sets it."""
    return settings.sync(dart.CATEGORIES, dart.MOST_LOOKBACK)


def _sync() -> dart.Choice:
    wanted = sync_settings()
    return dart.Choice(wanted.categories, wanted.lookback)


SOURCES: tuple[Source, ...] = (
    finra.SOURCE,
    alpaca.SOURCE,
    fred.source(_some(_listed("fred_series.yaml"), settings.groups_of(settings.FRED_GROUPS), settings.FRED_GROUPS)),
    krx.SOURCE,
    sec.source(_listed("sec.yaml"), _listed("sec_sp500.yaml")),
    kind.SOURCE,
    ecos.source(_some(_listed("ecos_series.yaml"), settings.groups_of(settings.ECOS_GROUPS), settings.ECOS_GROUPS)),
    edgar.source(_listed("edgar.yaml")),
    dart.source(minutes=settings.monitor_minutes(), is_on=settings.monitor_is_on(), sync=_sync()),
)


def sync_streams() -> dict[str, str]:
    """Return the streams that keep DART's reports, by category."""
    return {name: f"dart.{name}" for name in sync_settings().categories}


@dataclass(frozen=True)
class NewCompanies:
    """Which streams take the past of new companies in, and how many of them in a run."""

    streams: tuple[str, ...]
    limit: int


def new_companies() -> NewCompanies:
    """Return how new companies are taken in, as this installation runs it."""
    wanted = sync_settings()
    return NewCompanies(tuple(f"dart.{name}" for name in wanted.new_categories), wanted.new_limit)


class UnknownName(Exception):
    """A source or stream is asked for that nobody declared; the text names those that exist."""


@cache
def sources() -> tuple[Source, ...]:
    """Return every source, with its schedules as set.

    Raises:
        SettingError: `config/schedules.yaml` cannot be used.
    """
    return schedules.applied(SOURCES, schedules.read(), schedules.SYSTEM_JOBS)


def source(name: str) -> Source:
    """Return a source by its name.

    Raises:
        UnknownName: there is none.
    """
    for candidate in sources():
        if candidate.name == name:
            return candidate
    raise UnknownName(f"There is no source {name!r}; there are {', '.join(s.name for s in SOURCES)}.")


def streams() -> tuple[Stream, ...]:
    """Return every stream of every source."""
    return tuple(stream for candidate in sources() for stream in candidate.streams)


def stream(name: str) -> Stream:
    """Return a stream by its full name, e.g. `finra.short_volume`.

    Raises:
        UnknownName: there is none.
    """
    for candidate in streams():
        if candidate.name == name:
            return candidate
    raise UnknownName(f"There is no stream {name!r}; there are {', '.join(s.name for s in streams())}.")


def bodies() -> tuple[Reading, ...]:
    """Return the ways to the text of a disclosure, in the order in which the analysis tries them."""
    return dart.readings(stream("dart.disclosures"))
