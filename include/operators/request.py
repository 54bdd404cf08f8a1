"""The request of a run: what its form, its configuration or Airflow's Backfill form asks for.

Promises: pure; unknown keys, values that are none and combinations that cannot be are refused in words. Never: no
database, no Airflow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Literal, cast

from include.contract import Mode, Stream

NAMES = (
    "mode",
    "streams",
    "start_date",
    "end_date",
    "keys",
    "run_id",
    "dry_run",
    "force",
    "replay_into",
    "reason",
)
# Only of DAGs with bars.
TIMEFRAME = "timeframe"


class RequestRefused(Exception):
    """The request cannot be done as it stands; the text says why and what would do."""


@dataclass(frozen=True)
class Form:
    """A request as read: every value of its type, nothing looked up yet.

    `window` is set for a run of Airflow's own Backfill form: collect again what the window of that instant was
    responsible for.
    """

    mode: Mode
    streams: tuple[Stream, ...]
    start: date | None = None
    end: date | None = None
    keys: tuple[str, ...] = ()
    run_id: str = ""
    dry_run: bool = False
    force: bool = False
    replay_into: Literal["overwrite", "versioned"] = "overwrite"
    reason: str = ""
    window: datetime | None = None
    timeframe: str = ""

    @property
    def is_plain_poll(self) -> bool:
        """Whether it asks for nothing but what is due now."""
        return self.mode is Mode.POLL and not self.keys and not self.force and self.window is None


def read(
    params: Mapping[str, Any],
    configuration: Mapping[str, Any],
    streams: Sequence[Stream],
    *,
    window: datetime | None = None,
) -> Form:
    """Read a request.

    Args:
        params: the run's params, defaults filled in.
        configuration: what the run was really given; a name in it that is no param refuses the run.
        streams: those of the DAG, in order.
        window: the logical date of a run made by Airflow's Backfill form.

    Raises:
        RequestRefused: the text says what is wrong and what would do.
    """
    names = (*NAMES, TIMEFRAME) if any(stream.timeframes for stream in streams) else NAMES
    unknown = sorted(set(configuration) - set(names))
    if unknown:
        raise RequestRefused(
            f"{', '.join(unknown)} is no parameter of this DAG; there are {', '.join(names)}. Nothing was done."
        )
    timeframe = (params.get(TIMEFRAME) or "").strip()
    form = Form(
        mode=_mode(params.get("mode")),
        streams=_streams(params.get("streams") or (), streams, _mode(params.get("mode")), timeframe),
        start=_day(params, "start_date"),
        end=_day(params, "end_date"),
        keys=tuple(dict.fromkeys(_texts(params, "keys"))),
        run_id=(params.get("run_id") or "").strip(),
        dry_run=_flag(params, "dry_run"),
        force=_flag(params, "force"),
        replay_into=_replay_into(params.get("replay_into")),
        reason=(params.get("reason") or "").strip(),
        window=window,
        timeframe=timeframe,
    )
    _check(form)
    return form


def _check(form: Form) -> None:
    """What only the combination shows; dates, keys and reasons are the engine's to judge."""
    if form.window is not None and form.mode is not Mode.POLL:
        raise RequestRefused(
            "Airflow's Backfill form collects again what each window was responsible for, and takes no mode. For a "
            f"range of session dates use Trigger with mode={form.mode}, start_date and end_date."
        )
    if form.mode is Mode.POLL and (form.start or form.end):
        raise RequestRefused(
            "mode=poll takes no dates: it asks for what is due now. For a range of session dates use mode=backfill."
        )
    if form.mode is Mode.POLL and form.run_id:
        raise RequestRefused("mode=poll takes no run_id: it names a backfill or replay. Leave it empty.")
    if form.mode is Mode.POLL and form.keys and form.force:
        raise RequestRefused(
            "keys with mode=poll asks for the newest of just those keys, each time anew; force adds nothing. For "
            "another session use mode=backfill with keys."
        )
    if form.timeframe and form.mode is not Mode.BACKFILL:
        raise RequestRefused(
            f"timeframe={form.timeframe} is for mode=backfill; a poll asks for what each stream collects, and a replay "
            "reads again whatever is stored. Leave it empty."
        )
    if form.replay_into != "overwrite" and form.mode is not Mode.REPLAY:
        raise RequestRefused(
            f"replay_into={form.replay_into} is for mode=replay; with mode={form.mode} leave it alone."
        )


def _mode(value: Any) -> Mode:
    try:
        return Mode(value or "poll")
    except ValueError:
        raise RequestRefused(f"mode is {value!r}; it can be {', '.join(Mode)}.") from None


def _streams(wanted: Any, streams: Sequence[Stream], mode: Mode, timeframe: str) -> tuple[Stream, ...]:
    """The streams that are named; unnamed, those of the DAG that can do what is asked, all where none can."""
    names = [wanted] if isinstance(wanted, str) else list(wanted)
    unknown = [name for name in names if name not in {stream.name for stream in streams}]
    if unknown:
        known = ", ".join(stream.name for stream in streams)
        raise RequestRefused(f"This DAG has no stream {', '.join(map(str, unknown))}; it has {known}.")
    if names or mode is not Mode.BACKFILL:
        return tuple(stream for stream in streams if not names or stream.name in names)
    if timeframe:
        return tuple(stream for stream in streams if stream.timeframes and stream.timeframes(timeframe)) or tuple(
            streams
        )
    return tuple(stream for stream in streams if not stream.snapshot_only) or tuple(streams)


def _day(params: Mapping[str, Any], name: str) -> date | None:
    value = params.get(name)
    if not value:
        return None
    try:
        return date.fromisoformat(value)
    except (TypeError, ValueError):
        raise RequestRefused(f"{name} is {value!r}, which is no date; write a session date as 2026-09-15.") from None


def _texts(params: Mapping[str, Any], name: str) -> list[str]:
    values = params.get(name) or []
    if isinstance(values, str) or not all(isinstance(value, str) and value.strip() for value in values):
        raise RequestRefused(f'{name} is {values!r}; it is a list of names, for example ["CNMS"].')
    return [value.strip() for value in values]


def _flag(params: Mapping[str, Any], name: str) -> bool:
    value = params.get(name)
    if value not in (None, True, False):
        raise RequestRefused(f"{name} is {value!r}; it is true or false.")
    return bool(value)


def _replay_into(value: Any) -> Literal["overwrite", "versioned"]:
    if (value or "overwrite") not in ("overwrite", "versioned"):
        raise RequestRefused(f"replay_into is {value!r}; it can be overwrite or versioned.")
    return cast("Literal['overwrite', 'versioned']", value or "overwrite")
