"""The queue of the analysis: claims and what becomes of them, each one function of the database.

Promises: every change of a claimed job goes by (receipt number, token), and says whether it hit; the cap is slot rows,
so that no number of workers gets over it. Never: a count decides who may go on, and nothing is asked for here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from uuid import UUID

from include.engine import incidents
from include.engine.db import Connection, Row, query, told

# A claim lasts five minutes (`dartbrief.claim`); renewed right before the model is asked, it lasts so long:
# more than the model's server is waited for.
SUBMITTING = timedelta(minutes=2)
# So often a job that the model forgot is given to it again without counting; after that it counts as a failure.
MOST_LOSSES = 3
# For how long nothing is claimed after the model was found away, and the incident that says so.
PAUSE = timedelta(seconds=20)
AWAY = "away/model"


@dataclass(frozen=True)
class Job:
    """A claimed filing."""

    rcept_no: str
    token: UUID
    title: str
    company: str
    attempt: int
    reading: str | None = None
    fetches: tuple[int, ...] = ()


@dataclass(frozen=True)
class InFlight:
    """What the model was given; `submitted_at` and `age` are None while it may still be on its way there."""

    rcept_no: str
    token: UUID
    response_id: str
    submitted_at: datetime | None
    age: timedelta | None


@dataclass(frozen=True)
class Standing:
    """How much there is to do: may be tried now, is claimed, was claimed by a dead worker, is with the model.

    `free` is how many more may be claimed now: none while the model is away.
    """

    waiting: int
    claimed: int
    stale: int
    in_flight: int
    free: int
    away_since: datetime | None

    @property
    def is_idle(self) -> bool:
        """Whether nothing is under way and nothing may be begun."""
        return not (self.waiting or self.claimed or self.stale or self.in_flight)


def permit(connection: Connection, jobs: int, newest_days: int) -> None:
    """Set how many jobs may be under way at once, and how old a filing may be that is analysed by itself, in days."""
    connection.execute(query("analysis.permit"), {"jobs": jobs, "newest_days": newest_days})


def ask_for(connection: Connection, start: date, end: date) -> int:
    """Put filings of a range that were never analysed, or given up, behind what comes in; return how many."""
    return _number(connection.execute(query("analysis.ask_for"), {"start": start, "end": end}).fetchone())


def read_again(connection: Connection, start: date, end: date, version: str) -> int:
    """Have the analyses of a range that were made with other prompts made again; return how many."""
    values = {"start": start, "end": end, "version": version}
    return _number(connection.execute(query("analysis.read_again"), values).fetchone())


def recover(connection: Connection) -> int:
    """Put the jobs of workers that vanished back; return how many."""
    return _number(connection.execute(query("analysis.recover")).fetchone())


def claim(connection: Connection) -> Job | None:
    """Take the next job and a slot; None at the cap, while the model is away, or where nothing may be tried."""
    row = connection.execute(query("analysis.claim")).fetchone()
    if row is None:
        return None
    return Job(
        row["rcept_no"],
        row["claim_token"],
        row["report_name"] or "",
        row["corp_name"] or "",
        row["attempt"],
        row["body_reading"],
        tuple(row["body_fetches"] or ()),
    )


def begin_submit(
    connection: Connection,
    job: Job,
    *,
    own_id: bool,
    kind: str,
    prompt: str,
    length: int,
    reading: str,
    fetches: Sequence[int],
) -> str | None:
    """Renew the claim right before the model is asked, and return the name that the answer shall have.

    Where the backend takes names (`own_id`) it is kept now: whoever dies after this leaves a job that is looked up and
    not given to the model twice. None where the claim is over; then nobody may be asked.
    """
    values = {
        "rcept_no": job.rcept_no, "token": job.token, "own_id": own_id, "kind": kind, "prompt": prompt,
        "length": length, "reading": reading, "fetches": list(fetches), "for": SUBMITTING,
    }  # fmt: skip
    row = connection.execute(query("analysis.begin_submit"), values).fetchone()
    return row["name"] if row else None


def submitted(connection: Connection, job: Job, response_id: str) -> bool:
    """Note that the model has it; False where that is no news any more."""
    values = {"rcept_no": job.rcept_no, "token": job.token, "response_id": response_id}
    return _hit(connection.execute(query("analysis.submitted"), values).fetchone())


def complete(
    connection: Connection, flight: InFlight, *, summary: str, points: Sequence[str], sentiment: str, model: str
) -> bool:
    """Keep an answer that was found good; False where the job is not this one's any more."""
    values = {
        "rcept_no": flight.rcept_no, "token": flight.token, "response_id": flight.response_id, "summary": summary,
        "points": "|||".join(points), "sentiment": sentiment, "model": told(model),
    }  # fmt: skip
    return _hit(connection.execute(query("analysis.complete"), values).fetchone())


def fail(connection: Connection, job: Job | InFlight, error: str, *, for_good: bool = False) -> bool:
    """Count a failure; the third, or one for good, is the last word."""
    values = {"rcept_no": job.rcept_no, "token": job.token, "error": told(error), "for_good": for_good}
    return _hit(connection.execute(query("analysis.fail"), values).fetchone())


def await_body(connection: Connection, job: Job, error: str, *, is_absent: bool) -> str | None:
    """Wait for the document: by five minutes for a day where it is absent, by the minute 60 times where it is empty.

    Returns:
        The state that it has now; None where the claim is over.
    """
    values = {"rcept_no": job.rcept_no, "token": job.token, "is_absent": is_absent, "error": told(error)}
    row = connection.execute(query("analysis.await_body"), values).fetchone()
    return row["status"] if row else None


def put_back(
    connection: Connection, job: Job | InFlight, error: str, wait: timedelta = timedelta(0), *, is_lost: bool = False
) -> bool:
    """Give a job back without counting a failure; `is_lost`: the model may have it, under a name that nobody knows."""
    values = {"rcept_no": job.rcept_no, "token": job.token, "wait": wait, "error": told(error), "lost": int(is_lost)}
    return _hit(connection.execute(query("analysis.put_back"), values).fetchone())


def lose(connection: Connection, flight: InFlight) -> str | None:
    """Have a job that the model forgot given to it again.

    None where it is another's, may still be on its way, or was when it was looked at: that the model did not know it
    then says nothing of a job that reached it after the look.
    """
    values = {
        "rcept_no": flight.rcept_no, "token": flight.token, "response_id": flight.response_id,
        "submitted_at": flight.submitted_at, "most": MOST_LOSSES,
    }  # fmt: skip
    row = connection.execute(query("analysis.lose"), values).fetchone()
    return row["status"] if row else None


def in_flight(connection: Connection, after: str, most: int) -> list[InFlight]:
    """Return what the model was given, after a receipt number, at most so many."""
    rows = connection.execute(query("analysis.in_flight"), {"after": after, "most": most}).fetchall()
    return [
        InFlight(row["rcept_no"], row["claim_token"], row["llm_response_id"], row["submitted_at"], row["age"])
        for row in rows
    ]


def standing(connection: Connection) -> Standing:
    """Return how much there is to do."""
    row = connection.execute(query("analysis.standing")).fetchone()
    assert row is not None
    return Standing(**row)


def model_away(connection: Connection, why: str) -> None:
    """Note that the model does not answer: nothing is claimed for a while, and somebody is told since when."""
    with connection.transaction():
        row = connection.execute(query("analysis.model_away"), {"pause": PAUSE}).fetchone()
        assert row is not None
        incidents.open(
            connection,
            key=AWAY,
            severity="error",
            text=f"The language model has not answered since {row['since'].isoformat(timespec='seconds')}: {told(why)} "
            "What was given to it stays noted and what waits keeps its place; nothing counts as failed. It goes on by "
            "itself. If it does not, look at the server, and at connection llm (or LLM_BASE_URL).",
        )


def model_back(connection: Connection) -> None:
    """Note that the model answers; costs a look where it was never away."""
    with connection.transaction():
        row = connection.execute(query("analysis.model_back")).fetchone()
        if row is not None and row["since"] is not None:
            since = row["since"].isoformat(timespec="seconds")
            incidents.close(connection, [AWAY], f"The language model answers again; it was away since {since}.")


def _hit(row: Row | None) -> bool:
    return bool(row and row["hit"])


def _number(row: Row | None) -> int:
    assert row is not None
    return int(row["count"])
