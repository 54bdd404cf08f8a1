"""The page of a source's DAG: what somebody needs at three in the morning.

Promises: made from the declaration alone, the same text in every process; schedules are shown in the upstream's zone
and in Seoul. Never: no clock, no connection.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from include.contract import Schedule, Source, Stream
from include.operators.hours import schedule_words


def wait_words(schedule: Schedule) -> str:
    """Say how long a window waits for what is not published yet, and what follows a failure."""
    text = (
        f"Not published yet: asked again {_span(schedule.retry_first)} after the window opened, then every "
        f"{_span(schedule.retry_every)}, until {_span(schedule.last_try)} after it."
    )
    if schedule.make_up:
        spans = ", ".join(_span(offset) for offset in schedule.make_up)
        text += f" Failed for a reason that may pass: make-up windows open {spans} after it, by themselves."
    return text


def keys_words(streams: Sequence[Stream]) -> str:
    """Say what keys are, for each stream where they differ."""
    of: dict[str, list[str]] = {}
    for stream in streams:
        of.setdefault(stream.keys_are, []).append(stream.name)
    if len(of) == 1:
        return next(iter(of))
    return "; ".join(f"for {_listed(names)}: {words}" for words, names in of.items())


def _listed(names: Sequence[str]) -> str:
    return " and ".join(part for part in (", ".join(names[:-1]), names[-1]) if part)


def _holds(stream: Stream) -> str:
    """What a stream is about and where that is found: its tables, if it has any."""
    tables = ", ".join(table.qualified for table in stream.tables)
    return f"**{stream.name}** – {stream.title}{f': {tables}' if tables else ''}."


def _span(span: timedelta) -> str:
    minutes = int(span.total_seconds() // 60)
    hours, rest = divmod(minutes, 60)
    return " ".join(part for part in (f"{hours} h" if hours else "", f"{rest} min" if rest else "") if part)


def doc(source: Source, streams: Sequence[Stream], lanes_pool: str, *, takes_form: bool = True) -> str:
    """Return the text that Airflow shows on the DAG's page; `takes_form`: its own Backfill form may be used."""
    form = (
        "Airflow's own Backfill form works too: each of its runs collects again what the window of its instant was "
        'responsible for. Its "to" is an instant, not a day: choose midnight after the last window. A range of '
        "sessions is better asked for with `mode=backfill`."
        if takes_form
        else "Airflow's own Backfill form is refused: it would make a run for each of many windows a day."
    )
    past = (
        "None of it can be backfilled; why stands below. "
        if all(stream.snapshot_only for stream in streams)
        else "Trigger with `mode=backfill`, `start_date` and `end_date` (session dates, both inclusive). The same "
        "request again joins the run that is there; `force` asks again for what succeeded. "
    )
    lines = [
        f"# {source.title} (`{streams[0].job_name}`)",
        "",
        *(f"- {_holds(stream)}" for stream in streams),
        "",
        f"**When.** {schedule_words(streams[0].schedule)}. {wait_words(streams[0].schedule)} Another time is set in "
        "`config/schedules.yaml`.",
        "",
        "**What it does.** `check_request` reads the request and refuses what cannot be, in words. Then one task a "
        "stream asks for what is due, stores every answer unchanged, and applies it; `summary` says what came of it. "
        "The note on the run begins with the word that matters.",
        "",
        "**When it is red,** read the note on the run.",
        "",
        "| the note says | what to do |",
        "|---|---|",
        "| REFUSED | The request or a connection is wrong; the note says what. Trigger again with it put right. |",
        "| FAILED … answers failed, lease expired | Nothing: a make-up window or the next window asks again. |",
        "| FAILED … refused by the upstream | Mend the cause (key, plan, block), then backfill the session. |",
        "| FAILED … could not be read, cannot be stored | Mend the parser or the storage; what was stored is kept. |",
        "| FAILED … not published by its last try | Nothing: its keys stay pending and are asked daily. |",
        "| NOT FINISHED, PARTIAL – run … | Trigger the same request: it goes on and leaves what is good. |",
        "| INTERRUPTED | The warehouse did not answer; the task is tried again by itself. |",
        "| NOT DONE | The first task refused the run; its own note says why. |",
        "",
        "When it is not red, there is nothing to do:",
        "",
        "| the note says | what it means |",
        "|---|---|",
        "| DONE, NOTHING DUE, NOTHING TO DO | All is read and applied, or there was nothing to ask for. |",
        "| PARTIAL – window … | All but some keys or files; the note names them, and later windows ask again. |",
        "| BUDGET | The day's budget is used; what is left is asked for by the next window. |",
        "| WAITING, GOING ON, AGAIN | The task comes back by itself at the time that the note says. |",
        "| ANOTHER RUN, FROZEN, SKIPPED | This run did nothing; the note says who does, or what ends it. |",
        "",
        "Clearing a task is always safe: what is over stays over, and what waits goes on. It never asks twice for one "
        "window; to collect a session once more, backfill it.",
        "",
        f"**The past.** {past}`mode=replay` with a `reason` reads again what is stored, without asking anybody.",
        "",
        form,
        "",
        *((source.about, "") if source.about else ()),
        f"`dry_run` shows the plan and writes nothing. `keys` are {keys_words(streams)}. Backfills and replays work in "
        f"the pool `{lanes_pool}`, so that polls always find a place.",
        "",
        *(
            f"{stream.name} has no past to backfill: {stream.snapshot_only}\n"
            for stream in streams
            if stream.snapshot_only
        ),
        f"Terms: {source.terms}",
    ]
    return "\n".join(lines)
