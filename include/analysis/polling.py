"""The poll loop: what the model was given is looked at, all of it by one loop, until each has its verdict.

Promises: what is looked at is read from the rows, so that whoever starts after a restart goes on with all of it; two
loops side by side do everything once, as each verdict goes by its token. Never: a server that is away costs a job
anything, and an answer counts before it was found good.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TypeVar

from include.analysis import queue, verdicts
from include.analysis.model import Backend, Looker, Said
from include.analysis.queue import InFlight, Standing
from include.engine.db import Connection, Line

# At most so many in one round, so many of them at once.
ROUND, AT_ONCE = 200, 16
# A job that waits for longer is ended and counts as failed.
DEADLINE = timedelta(minutes=10)

Result = TypeVar("Result")


@dataclass
class Round:
    """What one round came to."""

    looked: int = 0
    outcomes: dict[str, int] = field(default_factory=dict)

    def add(self, outcome: str) -> None:
        """Count one more."""
        self.outcomes[outcome] = self.outcomes.get(outcome, 0) + 1


class Poller:
    """Looks at everything that is with the model. `signal` is told before each verdict is written, for tests."""

    def __init__(self, url: str, backend: Backend, *, signal: Callable[[str], None] = lambda step: None) -> None:
        self._line = Line(url, application="daybook analysis poll")
        self._looker = Looker(backend)
        self._signal = signal
        self._after = ""

    async def close(self) -> None:
        """Close its connections."""
        await self._looker.close()
        self._line.close()

    async def standing(self) -> Standing:
        """Return how much there is to do."""
        return await self._in_database(queue.standing)

    async def round(self) -> Round:
        """Look at the next jobs, at most `ROUND` of them, and write what became of them."""
        flights = await self._in_database(self._next)
        done = Round(len(flights))
        if not flights:
            return done
        turns = asyncio.Semaphore(AT_ONCE)

        async def look(flight: InFlight) -> Said:
            async with turns:
                said = await self._looker.look(flight.response_id)
                is_overdue = flight.age is not None and flight.age > DEADLINE
                if said.state == "waiting" and is_overdue and await self._looker.cancel(flight.response_id):
                    # It may have been finished between the look and the end that was asked for.
                    return _ended(await self._looker.look(flight.response_id))
                return said

        found = await asyncio.gather(*(look(flight) for flight in flights))
        await self._in_database(lambda connection: self._settle(connection, flights, found, done))
        return done

    def _next(self, connection: Connection) -> list[InFlight]:
        flights = queue.in_flight(connection, self._after, ROUND)
        if not flights and self._after:
            flights = queue.in_flight(connection, "", ROUND)
        self._after = flights[-1].rcept_no if len(flights) == ROUND else ""
        return flights

    def _settle(self, connection: Connection, flights: list[InFlight], found: list[Said], done: Round) -> None:
        for flight, said in zip(flights, found, strict=True):
            self._signal(said.state)
            done.add(_verdict(connection, flight, said))
        away = [said for said in found if said.state == "away"]
        if len(away) == len(found):
            queue.model_away(connection, f"{away[0].why}.")
        else:
            queue.model_back(connection)

    async def _in_database(self, work: Callable[[Connection], Result]) -> Result:
        return await asyncio.to_thread(self._line.kept, work)


def _ended(said: Said) -> Said:
    """What an overdue job came to whose end was asked for, as it was looked at after that."""
    if said.state in ("waiting", "failed"):
        return Said("failed", why=f"no answer within {DEADLINE.total_seconds() / 60:.0f} minutes")
    return said


def _verdict(connection: Connection, flight: InFlight, said: Said) -> str:
    """Write what became of a job, and say it."""
    if said.state == "away":
        return "away"
    if said.state == "waiting":
        if flight.age is None:
            # Its worker died after the submit: the server has it, and its time runs from now on.
            queue.submitted(connection, _job(flight), flight.response_id)
        return "waiting"
    if said.state == "lost":
        return "waiting" if queue.lose(connection, flight) is None else "lost"
    if said.state == "completed":
        try:
            answer = verdicts.read(said.text)
        except verdicts.Refused as no:
            said = Said("failed", why=str(no))
        else:
            hit = queue.complete(
                connection,
                flight,
                summary=answer.summary,
                points=answer.key_points,
                sentiment=answer.sentiment,
                model=said.model,
            )
            return "completed" if hit else "another's"
    return "failed" if queue.fail(connection, flight, said.why) else "another's"


def _job(flight: InFlight) -> queue.Job:
    return queue.Job(flight.rcept_no, flight.token, "", "", 0)
