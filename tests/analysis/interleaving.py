"""Workers and poll loops that take turns at every step, in an order that a seed gives, and what may never be seen then.

One actor at a time runs, from one of its steps to the next; in between, time passes, servers restart or go away, and
actors are killed. So each run is the same however the machine is loaded, and what happens between two steps of one is
tried against every step of the others.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random

from include.analysis import queue
from include.analysis.model import Looker, Said, Submitter
from include.analysis.polling import Poller
from include.analysis.submit import Worker
from include.engine.db import Line, connect
from tests.analysis.office import Killed, Office

CAP = 3
# Longer than anything of one step takes; who waits for longer has stopped for good.
PATIENCE = 60.0


class Actor:
    """Runs something in a thread, a step at a time."""

    def __init__(self, name: str, work: Callable[[Callable[[str], None]], object]) -> None:
        self.name, self.at, self.is_over = name, "begin", False
        self.error: BaseException | None = None
        self._is_killed = False
        self._go, self._back = threading.Semaphore(0), threading.Semaphore(0)
        self._thread = threading.Thread(target=self._run, args=(work,), daemon=True)
        self._thread.start()

    def _run(self, work: Callable[[Callable[[str], None]], object]) -> None:
        try:
            self.reach("begun to run")
            work(self.reach)
        except Killed:
            pass
        except BaseException as error:
            self.error = error
        self.is_over = True
        self._back.release()

    def reach(self, step: str) -> None:
        """Called by what runs: here it waits for its turn."""
        if self._is_killed:
            raise Killed
        self.at = step
        self._back.release()
        assert self._go.acquire(timeout=PATIENCE)
        if self._is_killed:
            raise Killed

    def ready(self) -> None:
        """Wait until it stands at its first step."""
        assert self._back.acquire(timeout=PATIENCE)

    def step(self, *, kill: bool = False) -> None:
        """Let it run to its next step, or end it where it stands."""
        self._is_killed = kill
        self._go.release()
        assert self._back.acquire(timeout=PATIENCE), f"{self.name} never came back from {self.at}"
        if self.error is not None:
            raise self.error


@dataclass
class Theatre:
    """Two workers and two poll loops of an office, and a seed that says who is next and what befalls them."""

    office: Office
    seed: int
    own_ids: bool = True
    said: list[str] = field(default_factory=list)
    actors: dict[str, Actor] = field(default_factory=dict)
    restarts: int = 0

    def __post_init__(self) -> None:
        self.office.own_ids = self.own_ids
        self.workers = {
            f"worker {n}": Worker(
                Line(self.office.place.url, application="a test"),
                self.office.texts,  # type: ignore[arg-type]
                Submitter(self.office.backend()),
                self.own_ids,
            )
            for n in (1, 2)
        }
        self.runners = {f"loop {n}": asyncio.Runner() for n in (1, 2)}
        self.pollers = {name: Poller(self.office.place.url, self.office.backend()) for name in self.runners}

    def close(self) -> None:
        """End who still stands somewhere, and close their connections."""
        for actor in self.actors.values():
            if not actor.is_over:
                actor.step(kill=True)
        for worker in self.workers.values():
            worker.line.close()
            worker.model.close()
        for name, runner in self.runners.items():
            runner.run(self.pollers[name].close())
            runner.close()

    def play(self, filings: int, steps: int) -> None:
        """Have the seed choose so many times, looking after each whether everything still holds."""
        chance, office = Random(self.seed), self.office
        office.permit(CAP)
        numbers = [office.file(n) for n in range(filings)]
        for _ in range(steps):
            self._befall(chance) if chance.random() < 0.25 else self._act(chance)
            self.check(filings)
        self._recover_all()
        for _ in range(40):
            office.submit()
            office.advance(seconds=45)
            office.poll()
            self.check(filings)
        for number in numbers:
            row = office.row(number)
            is_good = row["status"] == "COMPLETED" or (row["status"] == "FAILED" and row["retry_count"] == 3)
            assert is_good, (self.words, row)
        assert office.slots() == 0, self.words
        assert office.sql("select 1 from dartbrief.analysis_history") == [], self.words

    def in_order(self, number: str, turns: Sequence[str]) -> None:
        """Have a worker that is about to send a filing, and a loop, take turns; then all is well for a while."""
        actors = {name: Actor(name, self._part(name)) for name in ("worker 1", "loop 1")}
        for actor in actors.values():
            actor.ready()
        while actors["worker 1"].at != "begun":
            actors["worker 1"].step()
        for name in (*turns, *("worker 1", "loop 1") * 8):
            if not actors[name].is_over:
                self.said.append(f"{name} from {actors[name].at}")
                actors[name].step()
        for _ in range(2):
            self.office.submit()
            self.office.advance(seconds=30)
            self.office.poll()
        row, made = self.office.row(number), self.office.made()[number]
        assert (row["status"], made, row["lost_count"]) == ("COMPLETED", 1, 0), (self.words, row)

    def _act(self, chance: Random) -> None:
        name = chance.choice([*self.workers, *self.pollers])
        actor = self.actors.get(name)
        if actor is None or actor.is_over:
            actor = self.actors[name] = Actor(name, self._part(name))
            actor.ready()
        is_killed = chance.random() < 0.06
        self.said.append(f"{name} {'is killed at' if is_killed else 'goes on from'} {actor.at}")
        actor.step(kill=is_killed)

    def _part(self, name: str) -> Callable[[Callable[[str], None]], object]:
        if name in self.workers:
            worker = self.workers[name]

            def work(reach: Callable[[str], None]) -> object:
                worker.signal = reach
                return worker.one()

            return work
        runner, poller = self.runners[name], self.pollers[name]

        def look(reach: Callable[[str], None]) -> object:
            poller._signal = lambda state: reach(f"verdict: {state}")
            poller._looker = _Stepping(poller._looker, reach)  # type: ignore[assignment]
            return runner.run(poller.round())

        return look

    def _befall(self, chance: Random) -> None:
        office, kind = self.office, chance.choice(_HAPPENS)
        self.said.append(kind)
        if kind == "seconds pass":
            office.advance(seconds=chance.uniform(1, 30))
        elif kind == "minutes pass":
            office.advance(minutes=chance.choice([1, 2.1, 5.1, 11]))
        elif kind == "the model restarts":
            office.switch("restart")
        elif kind == "the model goes away":
            office.switch("is_away")
        elif kind == "the model comes back":
            office.switch("is_away", **{"is": False})
        elif kind == "an answer to a submit is lost":
            lost = chance.choice([{"truncate": 10}, {"status": 504, "apply": True}, {"status": 502}, {"reset": True}])
            office.running.fault(match={"host": "llm.sandbox.invalid", "kind": "submit"}, **lost)
        elif kind == "a submit is refused":
            office.running.fault(match={"host": "llm.sandbox.invalid", "kind": "submit"}, status=400)
        elif kind == "jobs fail":
            office.switch("outcome", outcomes=[chance.choice(["failed", "invalid", "incomplete"])])
        elif kind == "somebody recovers":
            with connect(office.place.url, autocommit=True) as connection:
                queue.recover(connection)

    def _recover_all(self) -> None:
        """Everybody who stands somewhere goes to the end, and then all is well for as long as it takes."""
        for actor in self.actors.values():
            while not actor.is_over:
                self.said.append(f"{actor.name} ends from {actor.at}")
                actor.step()
        self.office.switch("is_away", **{"is": False})
        self.office.running.control("DELETE", "faults", None)

    def check(self, filings: int) -> None:
        """What may never be seen, whoever stands where."""
        (row,) = self.office.sql(
            "select count(*) filter (where status in ('PROCESSING', 'BODY_PROCESSING')) as busy,"
            " sum(retry_count) as failures, sum(lost_count) as losses, count(*) as rows,"
            " (select count(*) from dartbrief.analysis_slots where rcept_no is not null) as slots,"
            " (select count(*) from dartbrief.analysis_slots s where rcept_no is not null and not exists"
            "   (select 1 from dartbrief.analysis_cache a"
            "     where a.rcept_no = s.rcept_no and a.claim_token = s.claim_token)) as stray"
            " from dartbrief.analysis_cache"
        )
        assert (row["rows"], row["stray"]) == (filings, 0), (self.words, row)
        assert row["slots"] == row["busy"] <= CAP, (self.words, row)
        # What the model holds: one job for each filing, and one more for each that failed and was counted so. A backend
        # that takes no names may also have one for each answer that was lost, which are counted too, but not whose.
        held = self.office.running.control("GET", "llm")["held"]
        if not self.own_ids:
            most = filings + row["failures"] + row["losses"]
            assert sum(held.values()) <= most, f"{held} with {most} permitted: {self.words}"
            return
        for each in self.office.sql("select rcept_no, retry_count from dartbrief.analysis_cache"):
            most = 1 + each["retry_count"]
            assert held.get(each["rcept_no"], 0) <= most, f"{held} with {each}: {self.words}"

    @property
    def words(self) -> str:
        """What happened, in order."""
        return f"seed {self.seed}: {'; '.join(self.said)}"


_HAPPENS = (
    "seconds pass", "seconds pass", "seconds pass", "minutes pass", "the model restarts", "the model goes away",
    "the model comes back", "the model comes back", "an answer to a submit is lost", "a submit is refused", "jobs fail",
    "somebody recovers",
)  # fmt: skip


class _Stepping:
    """A looker that stops before and after each thing that it asks."""

    def __init__(self, looker: Looker | _Stepping, reach: Callable[[str], None]) -> None:
        self._looker = looker._looker if isinstance(looker, _Stepping) else looker
        self._reach = reach

    async def look(self, name: str) -> Said:
        await asyncio.to_thread(self._reach, "look")
        said = await self._looker.look(name)
        await asyncio.to_thread(self._reach, f"looked: {said.state}")
        return said

    async def cancel(self, name: str) -> bool:
        await asyncio.to_thread(self._reach, "cancel")
        return await self._looker.cancel(name)

    async def close(self) -> None:
        await self._looker.close()
