"""A morning in any order: windows, claims, expiries, crashes, clears, freezes and cutoffs against a small model.

The model is a few dictionaries that anybody can check by reading; the database must agree with it after each step.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from itertools import count, islice
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from include.calendars import last_instant
from include.contract import Stream
from include.engine import controls, snapshot, upkeep
from include.engine.controls import Change
from include.local.postgres import Cluster
from tests.engine.seoul import DART, DAY, FINRA, KRX, Seoul, kst

# Minutes of mornings in any order: part of the long runs.
pytestmark = pytest.mark.chaos

STREAMS = (FINRA, KRX, DART)
TTL = timedelta(minutes=5)
GRACE = timedelta(minutes=5)
TERMINAL = ("SUCCESS", "FAILED", "BUDGET_EXHAUSTED")
# When something happens: dispatch, the windows of New York, KRX and DART, the cutoff, the end of the grace.
MARKS = ((0, 1), (7, 36), (8, 11), (8, 56), (8, 59), (9, 0), (9, 2), (9, 6))
_numbers = count(1)


@dataclass
class Window:
    """A window of a stream as the model knows it."""

    start: datetime
    state: str
    until: datetime | None = None
    fetched: int = 0


@dataclass
class Model:
    """What must be so: windows by stream, controls, and each date's verdict."""

    activated: datetime
    windows: dict[str, list[Window]] = field(default_factory=lambda: {stream.name: [] for stream in STREAMS})
    frozen: dict[str, bool] = field(default_factory=lambda: dict.fromkeys((stream.name for stream in STREAMS), False))
    off: datetime | None = None
    snapshots: dict[date, tuple[str, dict[str, tuple[str, int, bool]]]] = field(default_factory=dict)
    expected: dict[date, set[str]] = field(default_factory=dict)

    def open(self, stream: Stream) -> Window | None:
        """The window that is open, if one is."""
        for window in self.windows[stream.name]:
            if window.state in ("PENDING", "RUNNING"):
                return window
        return None

    def at(self, stream: Stream, start: datetime) -> Window | None:
        """The window of an instant."""
        return next((window for window in self.windows[stream.name] if window.start == start), None)

    def gate(self, now: datetime) -> None:
        """Whoever writes a state after a cutoff that nobody took takes it first."""
        for day, (status, _) in self.snapshots.items():
            if status == "PENDING" and now >= snapshot.cutoff(day):
                self.snapshots[day] = ("NOT_APPLICABLE", {}) if self.off else ("CAPTURED", self.judge(day))

    def judge(self, day: date) -> dict[str, tuple[str, int, bool]]:
        """Each expected stream's last window due by nine: its state, what it read, and whether it is frozen."""
        found = {}
        for stream in STREAMS:
            if stream.name not in self.expected.get(day, set()):
                continue
            allowance = stream.schedule.allowance
            cutoff = snapshot.cutoff(day)
            start = last_instant(stream.schedule.cron, stream.schedule.timezone, cutoff - allowance)
            due = [w for w in self.windows[stream.name] if start <= w.start and w.start + allowance <= cutoff]
            frozen = self.frozen[stream.name]
            if due:
                window = max(due, key=lambda w: w.start)
                found[stream.name] = (window.state, window.fetched, frozen)
            elif start >= self.activated:
                found[stream.name] = ("NOT_STARTED", 0, frozen)
        return found


class Morning(RuleBasedStateMachine):
    """The rules; each does something to the database and to the model alike."""

    cluster: Cluster
    template: str

    def __init__(self) -> None:
        super().__init__()
        self.name = f"morning_{next(_numbers)}"
        url = self.cluster.create_database(self.name, template=self.template)
        self.seoul = Seoul(url, STREAMS)
        self.time = kst(DAY - timedelta(days=1), 23, 50, 30)
        self.seoul.at(self.time)
        self.seoul.activated(self.time)
        self.model = Model(self.seoul.one("select min(activated_at) as t from collect.streams")["t"])

    def teardown(self) -> None:
        self.seoul.close()
        self.cluster.drop_database(self.name)

    # --- time

    @initialize()
    def the_first_night(self) -> None:
        self._goes_on(1)
        self.the_day_is_dispatched()

    @rule(marks=st.integers(1, 3))
    def the_clock_goes_on(self, marks: int) -> None:
        self._goes_on(marks)

    @rule(marks=st.integers(1, 2))
    def the_clock_goes_on_and_so_does_the_work(self, marks: int) -> None:
        """What a day does by itself: it is dispatched at its beginning, and ticks open what is due."""
        self._goes_on(marks)
        if self.time.astimezone(kst().tzinfo).hour == 0:
            self.the_day_is_dispatched()
        for stream in STREAMS:
            self.a_tick_opens_what_is_due(stream)
            self.a_worker_claims(stream)

    @rule(minutes=st.sampled_from([1, 6]))
    def time_passes(self, minutes: int) -> None:
        self._at(self.time + timedelta(minutes=minutes))

    def _goes_on(self, marks: int) -> None:
        """On to one of the next instants of interest on Seoul's clock, half a minute past it."""
        day = self.time.astimezone(kst().tzinfo).date()
        coming = (kst(day + timedelta(days=n), *mark, 30) for n in range(3) for mark in MARKS)
        self._at(list(islice((instant for instant in coming if instant > self.time), marks))[-1])

    def _at(self, instant: datetime) -> None:
        self.time = instant
        self.seoul.at(instant)

    # --- windows

    @rule(stream=st.sampled_from(STREAMS))
    def a_tick_opens_what_is_due(self, stream: Stream) -> None:
        start = last_instant(stream.schedule.cron, stream.schedule.timezone, self.time)
        opened = self.seoul.open(stream, start)
        self.model.gate(self.time)
        there, busy = self.model.at(stream, start), self.model.open(stream)
        is_free = (there is None or there.state == "NOT_STARTED") and not self.model.frozen[stream.name]
        if not is_free or self.model.off is not None:
            assert opened is None
            return
        for window in self.model.windows[stream.name]:
            if window.start < start and window.state in ("PENDING", "NOT_STARTED"):
                window.state = "FAILED"
        if busy is not None and busy.state == "RUNNING":
            assert opened is None
            return
        assert opened is not None
        if there is None:
            self.model.windows[stream.name].append(Window(start, "PENDING"))
        else:
            there.state = "PENDING"

    @rule(stream=st.sampled_from(STREAMS))
    def a_worker_claims(self, stream: Stream) -> None:
        """Whoever claims ends the stream's lease first if it is over."""
        self.seoul.sql("select * from collect.recover(%s, 10)", stream.name)
        self._expire(stream)
        held = self.seoul.claim(stream, ttl="5 minutes")
        window = self.model.open(stream)
        if window is None or window.state != "PENDING" or self.model.frozen[stream.name]:
            assert held is None
            return
        self.model.gate(self.time)
        assert held is not None
        window.state, window.until = "RUNNING", self.time + TTL

    @rule(
        stream=st.sampled_from(STREAMS),
        status=st.sampled_from(["SUCCESS", "FAILED", "BUDGET_EXHAUSTED", "PENDING", "RUNNING"]),
        rows=st.integers(0, 9),
    )
    def a_worker_settles(self, stream: Stream, status: str, rows: int) -> None:
        """Well, badly, for now, or given back in good order, as a cleared task does."""
        if stream.name not in self.seoul.leases:
            return
        window = self.model.open(stream)
        is_over = window is None or window.state != "RUNNING" or window.until is None or window.until <= self.time
        if is_over:
            with pytest.raises(Exception, match=r"the lease of cycle \d+ is over"):
                self.seoul.settle(stream, status, fetched=rows)
            return
        assert window is not None
        self.seoul.settle(stream, status, fetched=rows)
        self.model.gate(self.time)
        window.state, window.fetched = status, window.fetched + rows
        if status != "RUNNING":
            window.until = None

    @rule()
    def the_next_claimer_ends_what_expired(self) -> None:
        ended = self.seoul.sql("select stream from collect.recover(null, 10)")
        assert {row["stream"] for row in ended} == self._expire()

    def _expire(self, *streams: Stream) -> set[str]:
        found = set()
        for stream in streams or STREAMS:
            window = self.model.open(stream)
            if window is not None and window.until is not None and window.until <= self.time:
                self.model.gate(self.time)
                window.state, window.until = "FAILED", None
                found.add(stream.name)
        return found

    # --- operators, dispatch, capture, upkeep

    @rule(stream=st.sampled_from(STREAMS), action=st.sampled_from(["freeze", "drain", "resume"]))
    def an_operator_freezes_or_resumes(self, stream: Stream, action: Any) -> None:
        controls.apply(self.seoul.url, Change(action, "stream", stream.name, "kim", "a test"))
        self.model.gate(self.time)
        self.model.frozen[stream.name] = action != "resume"

    @rule(action=st.sampled_from(["off", "on"]))
    def an_operator_switches_dispatch(self, action: Any) -> None:
        controls.apply(self.seoul.url, Change(action, "dispatch", "", "kim", "a test"))
        self.model.gate(self.time)
        if action == "on":
            self.model.off = None
        elif self.model.off is None:
            self.model.off = self.time

    @rule()
    def the_day_is_dispatched(self) -> None:
        self.seoul.dispatch()
        self.model.gate(self.time)
        day = self.time.astimezone(kst().tzinfo).date()
        known = self.model.snapshots.get(day)
        is_active = self.model.activated <= snapshot.cutoff(day)
        if self.model.off is not None:
            if known is None and is_active:
                self.model.snapshots[day] = ("NOT_APPLICABLE", {})
            return
        if known is None and is_active:
            is_early = self.time < snapshot.cutoff(day)
            self.model.snapshots[day] = ("PENDING", {}) if is_early else ("MISSED", {})
        if self.model.snapshots.get(day, ("",))[0] == "PENDING":
            self.model.expected[day] = {stream.name for stream in STREAMS}
        if self._is_first_day(day):
            return
        for stream, hour, minute in ((FINRA, 7, 35), (KRX, 8, 10)):
            start = kst(day, hour, minute)
            fires = last_instant(stream.schedule.cron, stream.schedule.timezone, start) == start
            if fires and start >= self.time and self.model.at(stream, start) is None:
                self.model.windows[stream.name].append(Window(start, "NOT_STARTED"))

    def _is_first_day(self, day: date) -> bool:
        return day == self.model.activated.astimezone(kst().tzinfo).date()

    @rule()
    def the_capturer_tries(self) -> None:
        day = self.time.astimezone(kst().tzinfo).date()
        before = self.model.snapshots.get(day, ("NO_HEADER", {}))[0]
        self.model.gate(self.time)
        after = self.model.snapshots.get(day, ("NO_HEADER", {}))[0]
        wanted = "EARLY" if after == "PENDING" else after if before in ("PENDING", "NO_HEADER") else f"ALREADY_{after}"
        assert self.seoul.capture(day) == wanted

    @rule()
    def upkeep_looks(self) -> None:
        upkeep.recover(self.seoul.url, GRACE)
        for day, (status, _) in self.model.snapshots.items():
            if status == "PENDING" and self.time >= snapshot.cutoff(day) + GRACE:
                self.model.snapshots[day] = ("MISSED", {})
        day = self.model.activated.astimezone(kst().tzinfo).date()
        while snapshot.cutoff(day) + GRACE <= self.time:
            if day not in self.model.snapshots and self.model.activated <= snapshot.cutoff(day):
                was_off = self.model.off is not None and self.model.off <= snapshot.cutoff(day)
                self.model.snapshots[day] = ("NOT_APPLICABLE" if was_off else "MISSED", {})
            day += timedelta(days=1)
        self._expire()

    # --- what must hold after each step

    @invariant()
    def the_windows_are_as_the_model_says(self) -> None:
        wanted = {
            (name, window.start): (window.state, window.fetched)
            for name, windows in self.model.windows.items()
            for window in windows
        }
        found = {
            (row["stream"], row["window_start"]): (row["cycle_status"], row["fetched_count"])
            for row in self.seoul.cycles()
        }
        assert found == wanted

    @invariant()
    def the_verdicts_are_as_the_model_says(self) -> None:
        rows = self.seoul.sql("select snapshot_date as day, capture_status as status from collect.sla_snapshots")
        assert {row["day"]: row["status"] for row in rows} == {
            day: status for day, (status, _) in self.model.snapshots.items()
        }
        items: dict[date, dict[str, tuple[str, int, bool]]] = {}
        for row in self.seoul.sql("select * from collect.sla_snapshot_sources"):
            found = (row["cycle_status"], row["fetched_count"], row["frozen"])
            items.setdefault(row["snapshot_date"], {})[row["stream"]] = found
        assert items == {day: judged for day, (_, judged) in self.model.snapshots.items() if judged}

    @precondition(lambda self: self.model.snapshots)
    @invariant()
    def each_verdict_was_told_once(self) -> None:
        told = {key for key in self.seoul.alerts() if key.startswith("snapshot/")}
        assert told == {
            f"snapshot/{day}/{status}"
            for day, (status, _) in self.model.snapshots.items()
            if status in ("CAPTURED", "MISSED")
        }


def try_mornings(cluster: Cluster, template: str, examples: int, steps: int, **more: Any) -> None:
    """Try so many mornings of so many steps at most, each on a database of its own."""
    run_state_machine_as_test(
        type("Bound", (Morning,), {"cluster": cluster, "template": template}),
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            **more,
        ),
    )


@pytest.fixture
def template(postgres: Cluster, request: pytest.FixtureRequest) -> str:
    """The migrated database that each morning is a copy of."""
    name: str = request.getfixturevalue("_migrated")
    return name


def test_any_morning_ends_as_the_model_says(postgres: Cluster, template: str) -> None:
    try_mornings(postgres, template, examples=12, steps=35, derandomize=True)
