"""A place at which KIND's list is collected morning by morning, and a model of who is listed, beside the product."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

from include import registry
from include.contract import CycleStatus, HostGroup, Mode
from include.engine import changes, cycle, dispatch, quarantine, windows
from include.engine.verdict import Verdict
from include.sandbox.kind_market import KONEX, generated
from tests.fixtures_sandbox import RunningSandbox
from tests.sources.places import Place

SEOUL = ZoneInfo("Asia/Seoul")
STREAM = replace(registry.stream("kind.companies"), host_group=HostGroup("kind", timedelta(0), timedelta(hours=2)))
FIRST = date(2026, 9, 14)
SIZE = 60


def kst(day: date, hour: int = 8, minute: int = 0) -> datetime:
    return datetime(day.year, day.month, day.day, hour, minute, tzinfo=SEOUL)


@dataclass
class Model:
    """What is listed by the rules, told from what each morning's list shows: written beside the product."""

    missed: dict[str, int] = field(default_factory=dict)
    believed: int = 0
    is_accepted: bool = False

    def morning(self, shown: set[str] | None) -> bool:
        """A list came, or none did; says whether it was one that is doubted."""
        if shown is None:
            return False
        lost = 0 if self.is_accepted else sum(missed == 0 and code not in shown for code, missed in self.missed.items())
        if len(shown) < 0.8 * self.believed or lost > max(3, self.believed / 50):
            return True
        self.believed, self.is_accepted = len(shown), False
        for code in list(self.missed):
            self.missed[code] += 1
            if self.missed[code] == STREAM.close_after and code not in shown:
                del self.missed[code]
        self.missed |= dict.fromkeys(shown, 0)
        return False

    def accept(self, shown: set[str]) -> None:
        """Somebody says that the list that was doubted is right."""
        self.believed, self.is_accepted = len(shown), True


@dataclass
class Desk:
    """One place with the stand-in, from midnight to nine."""

    place: Place
    running: RunningSandbox
    model: Model = field(default_factory=Model)

    def nap(self, seconds: float) -> None:
        self.place.at(self.place.now() + timedelta(seconds=seconds))

    def work(self) -> Verdict | None:
        return cycle.work(replace(self.place.worker(STREAM), nap=self.nap), STREAM, Mode.POLL, None)

    def poll(self, day: date, minutes: int = 1) -> Verdict:
        self.place.at(kst(day, 8, minutes))
        windows.declare(self.place.url, (STREAM,))
        assert windows.open_due(self.place.url, STREAM) is not None
        verdict = self.work()
        assert verdict is not None
        assert self.work() is None
        return verdict

    def morning(self, day: date) -> tuple[Verdict, bool]:
        """Midnight, the window, and nine: what came of it, and whether the snapshot calls it late."""
        self.place.at(kst(day, 0, 1))
        dispatch.dispatch(self.place.url, (STREAM,))
        verdict = self.poll(day)
        self.place.at(kst(day, 9))
        self.place.sql("select collect.capture(%s, %s)", day, "a test")
        query = "select is_late from collect.sla_snapshot_sources where snapshot_date = %s and stream = %s"
        (row,) = self.place.sql(query, day, STREAM.name)
        return verdict, row["is_late"]

    def switch(self, switch: str, **order: Any) -> None:
        self.running.switch("kind", switch, **order)

    def show(self, what: str, first: date, days: int = 1, **more: Any) -> None:
        span = {"from": kst(first).isoformat(), "until": kst(first + timedelta(days=days)).isoformat()}
        self.switch("show", what=what, **span, **more)

    def universe(self) -> dict[str, dict[str, Any]]:
        return {row["code"]: row for row in self.place.sql("select * from market.kind_universe")}

    def as_of(self, day: date) -> dict[str, dict[str, Any]]:
        return {row["code"]: row for row in self.place.sql("select * from market.kind_as_of(%s)", day)}

    def departed(self) -> set[str]:
        return {row["code"] for row in self.place.sql("select code from market.kind_departed")}

    def untold(self) -> int:
        return changes.untold(self.place.url, STREAM.name).changed

    def asked(self) -> int:
        return len(self.running.requests(host="kind.krx.co.kr"))

    def accept(self) -> None:
        """The operator believes the newest list that is doubted."""
        entry = quarantine.entries(self.place.url, STREAM.name)[0]
        quarantine.accept(self.place.url, STREAM, entry["quarantine_id"], "a test", "so many did leave")

    def incidents(self) -> set[str]:
        return {row["incident_key"] for row in self.place.sql("select * from ops.incidents where closed_at is null")}


def on(day: date) -> str:
    """Ten in the evening before: the list of that morning shows it."""
    return (kst(day) - timedelta(hours=10)).isoformat()


def initial(size: int = SIZE) -> list[str]:
    return sorted(company.code for company in generated(7, size) if company.market != KONEX)


def play(here: Desk, days: list[date], chance: Random, size: int = SIZE) -> dict[date, set[str]]:
    """Mornings with whatever happens, each judged at nine; returns the universe of each."""
    alive, gone, universes = set(initial(size)), set[str](), dict[date, set[str]]()
    number = 0
    for day in days:
        hidden = set[str]()
        for _ in range(chance.choice((0, 0, 1, 1, 2))):
            event = chance.choice(("list", "delist", "delist", "rename", "sector", "back", "konex", "hide"))
            if event == "list":
                number += 1
                code = f"{number:04d}{chance.choice('GKL')}0"
                here.switch("list", code=code, at=on(day))
                alive.add(code)
            elif event == "back" and gone:
                code = gone.pop()
                here.switch("list", code=code, at=on(day), name="다시왔네")
                alive.add(code)
            elif event == "konex":
                number += 1
                here.switch("list", code=f"9{number:04d}0", market=KONEX, at=on(day))
            else:
                code = chance.choice(sorted(alive))
                if event == "delist":
                    here.switch("delist", code=code, at=on(day))
                    alive.discard(code)
                    gone.add(code)
                elif event == "hide":
                    here.switch("hide", code=code, day=day.isoformat())
                    hidden.add(code)
                else:
                    changed = {"name": f"새이름{day:%m%d}"} if event == "rename" else {"sector": "다른 업종"}
                    here.switch("change", code=code, at=on(day), **changed)
        what = chance.choice(("list",) * 8 + ("maintenance", "blocked", "small", "cut", "without_markets", "bad_bytes"))
        if what != "list":
            here.show(what, day, share=0.6)
        verdict, is_late = here.morning(day)
        is_list = what in ("list", "small", "without_markets", "bad_bytes")
        assert (verdict.status is CycleStatus.SUCCESS) is is_list, (day, what, verdict.words)
        assert is_late is not is_list, (day, what)
        shown = alive - hidden
        if here.model.morning(shown if what == "list" else None):
            here.accept()
            here.model.accept(shown)
        assert set(here.universe()) == set(here.model.missed), (day, what)
        assert set(here.as_of(day)) == set(here.model.missed)
        universes[day] = set(here.model.missed)
    return universes
