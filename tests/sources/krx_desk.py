"""A desk at which KRX is collected morning by morning on a simulated clock, with the stand-in beside it to be asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from include.calendars import calendar
from include.contract import CycleStatus, HostGroup, Mode, Stream
from include.engine import cycle, dispatch, jobs, snapshot, windows
from include.engine.verdict import Verdict
from include.sandbox.krx import Krx
from include.sources.krx import services
from include.sources.krx.streams import HOST_GROUP, INDICES_STREAM, ISSUES_STREAM, PRICES_STREAM
from tests.fixtures_sandbox import RunningSandbox
from tests.sources.places import Place

SEOUL = ZoneInfo("Asia/Seoul")
HOST = "data-dbg.krx.co.kr"
OF = {
    PRICES_STREAM.name: services.PRICES,
    ISSUES_STREAM.name: services.ISSUES,
    INDICES_STREAM.name: services.INDICES,
}
# One row of each service and day that is held, by the stream.
HELD = {
    PRICES_STREAM.name: "select distinct market as name, session_date from market.krx_prices",
    ISSUES_STREAM.name: "select distinct market as name, session_date from market.krx_issues",
    INDICES_STREAM.name: "select distinct family as name, session_date from market.krx_indices"
    " union select 'BOND', session_date from market.krx_bond_indices",
}


def kst(day: date, hour: int = 0, minute: int = 0, second: int = 0) -> datetime:
    return datetime(day.year, day.month, day.day, hour, minute, second, tzinfo=SEOUL)


def quick(*streams: Stream, **group: Any) -> tuple[Stream, ...]:
    """The streams without a wait between two requests."""
    host: HostGroup = replace(HOST_GROUP, interval=timedelta(0), **group)
    return tuple(replace(stream, host_group=host) for stream in streams)


@dataclass
class Desk:
    """One place with the stand-in, and the same stand-in beside it to be asked what was published."""

    place: Place
    running: RunningSandbox
    beside: Krx
    streams: tuple[Stream, ...]
    refused: set[str] = field(default_factory=set)

    @property
    def stream(self) -> Stream:
        return self.streams[0]

    # --- what happens upstream

    def switch(self, switch: str, **order: Any) -> None:
        self.running.switch("krx", switch, **order)
        self.beside.switch({"switch": switch, **order})

    def fault(self, **rule: Any) -> None:
        self.running.fault(match={"host": HOST, **rule.pop("match", {})}, **rule)

    def asked(self, kind: str | None = None) -> int:
        return sum(kind is None or entry["kind"] == kind for entry in self.running.requests(host=HOST))

    # --- what the desk does

    def nap(self, seconds: float) -> None:
        self.place.at(self.place.now() + timedelta(seconds=seconds))

    def work(self, stream: Stream, mode: Mode = Mode.POLL, run_id: str | None = None) -> Verdict | None:
        return cycle.work(replace(self.place.worker(stream), nap=self.nap), stream, mode, run_id)

    def tick(self, at: datetime) -> dict[str, Verdict]:
        """Work whatever is due at an instant; the last verdict of each stream that had something to do."""
        self.place.at(at)
        last: dict[str, Verdict] = {}
        for stream in self.streams:
            windows.declare(self.place.url, (stream,))
            windows.open_due(self.place.url, stream)
            while (verdict := self.work(stream)) is not None:
                last[stream.name] = verdict
        return last

    def poll(self, day: date, hour: int = 8, minute: int = 17) -> Verdict:
        """The first try of a morning, of the first stream."""
        return self.tick(kst(day, hour, minute))[self.stream.name]

    def morning(self, day: date) -> dict[str, snapshot.Item]:
        """A morning: dispatch, every try until nine, the capture, and on to noon; returns what the verdict says."""
        self.place.at(kst(day, 0, 0, 30))
        dispatch.dispatch(self.place.url, self.streams)
        self._try_until(kst(day, 8, 16), kst(day, 8, 59))
        self.place.at(kst(day, 9))
        self.place.sql("select collect.capture(%s, 'the capturer')", day)
        items = {item.stream: item for item in snapshot.read(self.place.url, day).items or ()}
        self.held_at_nine = self.held()
        if any(self.newest(stream)["cycle_status"] != CycleStatus.SUCCESS for stream in self.streams):
            self._try_until(kst(day, 10, 41), kst(day, 12, 30), by=timedelta(minutes=80))
        return items

    def _try_until(self, at: datetime, end: datetime, by: timedelta = timedelta(minutes=12)) -> None:
        while at <= end:
            self.tick(at)
            if all(self.newest(stream)["cycle_status"] == CycleStatus.SUCCESS for stream in self.streams):
                return
            at += by

    def newest(self, stream: Stream) -> dict[str, Any]:
        newest = windows.standing(self.place.url, stream).newest
        assert newest is not None
        return newest

    def backfill(self, start: date, end: date, **more: Any) -> jobs.Progress:
        for stream in self.streams:
            windows.declare(self.place.url, (stream,))
            request = jobs.JobRequest(Mode.BACKFILL, (stream,), start, end, **more)
            jobs.start(self.place.url, request)
            jobs.plan(self.place.url, request, stream)
            while (verdict := self.work(stream, Mode.BACKFILL, request.name)) is not None:
                if verdict.is_held:
                    break
        return jobs.conclude(self.place.url, request.name)[1]

    # --- what came of it

    def held(self) -> set[tuple[str, str, date]]:
        """Stream, service and day of everything that there are rows of."""
        return {
            (stream.name, row["name"], row["session_date"])
            for stream in self.streams
            for row in self.place.sql(HELD[stream.name])
        }

    def published(self, at: datetime, since: date) -> set[tuple[str, str, date]]:
        """The same of everything that the stand-in had to give at an instant, but for refused services."""
        found = set()
        for stream in self.streams:
            for name, service in OF[stream.name].items():
                day = since
                while service.path not in self.refused and day < at.astimezone(SEOUL).date():
                    appeared = self.beside.exchange.published_at(service.path, day)
                    if appeared is not None and appeared <= at:
                        found.add((stream.name, name, day))
                    day += timedelta(days=1)
        return found

    def had(self, day: date, since: date) -> set[tuple[str, str, date]]:
        """Everything that the stand-in had by the end of a morning, refused or not."""
        refused, self.refused = self.refused, set()
        try:
            return self.published(kst(day, 8, 59), since)
        finally:
            self.refused = refused

    def pending(self) -> dict[str, dict[str, Any]]:
        return {row["key"]: row for row in self.place.sql("select * from collect.pending where why <> 'recheck'")}

    def exceptions(self) -> dict[date, str]:
        rows = self.place.sql("select day, state from collect.calendar_exceptions where calendar = 'XKRX'")
        return {row["day"]: row["state"] for row in rows}

    def decide(self, day: date, state: Any = "closed") -> None:
        windows.decide(self.place.url, "XKRX", day, state, "an operator", "a test")

    def prices(self, code: str, *columns: str) -> list[tuple[Any, ...]]:
        chosen = ", ".join(("session_date", *columns))
        rows = self.place.sql(f"select {chosen} from market.krx_prices where code = %s order by session_date", code)
        return [tuple(row.values()) for row in rows]

    def incidents(self) -> str:
        return "\n".join(row["text"] for row in self.place.sql("select text from ops.alerts order by alert_id"))


def weekdays(first: date, last: date) -> Sequence[date]:
    days = (first + timedelta(days=n) for n in range((last - first).days + 1))
    return [day for day in days if day.weekday() < 5]


def sessions(first: date, last: date) -> list[date]:
    """The days that the calendar library calls sessions."""
    return calendar("XKRX").sessions(first, last)
