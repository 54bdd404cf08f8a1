"""EDGAR's quarterly statement data sets: which quarters are looked for, and the files that are made of their members.

Promises: each day the last four quarters that are over are looked at, so that a new one is found and one that was built
anew is read again; a backfill names quarters. `edgar.statements` asks nobody. Never: a quarter that is not published is
a failure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import date
from functools import cache, partial
from itertools import islice
from typing import BinaryIO

from include.contract import (
    Answer,
    AnswerClass,
    Archive,
    Ask,
    Body,
    Budget,
    Chunk,
    Made,
    Making,
    ParseError,
    Request,
    Span,
    Stream,
)
from include.sources.edgar import answers, quarters, set_files
from include.sources.edgar.quarters import Quarter
from include.sources.edgar.streams import DAILY, HOST_GROUP, WWW, parse

SETS, STATEMENTS = "edgar.statement_sets", "edgar.statements"
KEYS_ARE = "quarters, e.g. 2025Q4"
# Sets are built anew now and then, late ones come after weeks: the newest may be the second last.
LOOKED_AT = 4
USUAL = ("sub", "pre", "tag")
NUMBERS = "num"

_KEY = re.compile(r"(?P<set>20[0-9]{2}Q[1-4])(?P<numbers>\.num)?/(?P<day>[0-9]{4}-[0-9]{2}-[0-9]{2})")
_UNIT = re.compile(r"(?P<quarter>20[0-9]{2}Q[1-4])/(?P<member>sub|pre|tag|num)")
_MEMBERS = frozenset({"sub.txt", "pre.txt", "tag.txt", "num.txt", "readme.htm", "readme.html"})
# Numbers of a quarter unpack to 700 MB; they are read line by line.
_MOST_BYTES = 4 << 30
_BUDGET = Budget(slice_seconds=240, reason="one archive is one request, and the files of a part are made in one piece")


def _unit_of(quarter: Quarter, wanted: tuple[str, ...], name: str) -> str | None:
    stem = name.removesuffix(".txt")
    return f"{quarter.name}/{stem}" if stem in wanted and name.endswith(".txt") else None


@cache
def _archive(quarter: Quarter, *, numbers: bool) -> Archive:
    """The quarter's archive; its numbers are an archive by themselves, so that they may be had later."""
    wanted = (NUMBERS,) if numbers else USUAL
    return Archive(
        f"{quarter.name}.num" if numbers else quarter.name,
        partial(_unit_of, quarter, wanted),
        most_bytes=_MOST_BYTES,
        unwanted=_MEMBERS - {f"{each}.txt" for each in wanted},
    )


def _request(quarter: Quarter, day: date, *, numbers: bool = False) -> Request:
    key = f"{quarter.name}{'.num' if numbers else ''}/{day}"
    return Request(
        key=key,
        unit=key,
        url=f"{WWW}/files/dera/data/financial-statement-data-sets/{quarter.year}q{quarter.number}.zip",
        session_date=day,
        kind="list",
        expected=False,
        archive=_archive(quarter, numbers=numbers),
    )


def _of_key(key: str) -> Request | None:
    found = _KEY.fullmatch(key)
    quarter = quarters.named(found["set"]) if found else None
    if found is None or quarter is None:
        return None
    try:
        return _request(quarter, date.fromisoformat(found["day"]), numbers=bool(found["numbers"]))
    except ValueError:
        return None


def plan(ask: Ask, *, numbers: bool) -> Iterator[Request]:
    """Plan the last four quarters for the newest session, those that an operator names, or that of a chunk."""
    day = max((*ask.sessions, *ask.closed), default=None)
    if "quarter" in ask.chunk:
        named = [quarters.named(str(ask.chunk["quarter"]))]
        day = date.fromisoformat(str(ask.chunk["on"]))
    elif ask.keys:
        named = [quarters.named(key) for key in dict.fromkeys(ask.keys)]
    else:
        named = list(islice(quarters.ended(day), LOOKED_AT)) if day else []
    planned: dict[str, Request] = {}
    for quarter in named:
        if quarter is not None and day is not None:
            wanted = [_request(quarter, day), *([_request(quarter, day, numbers=True)] if numbers else [])]
            planned |= {request.key: request for request in wanted}
    for key in ask.pending:
        if key not in planned and (again := _of_key(key)) is not None:
            planned[key] = again
    yield from planned.values()


def chunks(span: Span) -> Iterator[Chunk]:
    """Name the quarters of a range, the newest first."""
    wanted = {quarter for key in span.keys if (quarter := quarters.named(key))}
    for quarter in quarters.between(span.start, span.end):
        if not span.keys or quarter in wanted:
            day = min(quarter.last_day, span.today)
            yield Chunk(quarter.name, day, {"quarter": quarter.name, "on": quarter.last_day.isoformat()})


def classify(answer: Answer) -> AnswerClass:
    """Tell what came; a site's page in place of a set is a fault of that set, unless it says that we are kept out.

    Raises:
        AnswerError: see `answers.classify`.
    """
    return answers.classify(answer, is_page_of_site=answer.status == 200)


def is_of(unit: str, keys: Sequence[str]) -> bool:
    """Say whether a unit is of one of some quarters."""
    name = unit.partition("/")[0].removesuffix(".num")
    return name in {quarter.name for key in keys if (quarter := quarters.named(key))}


def path_of(unit: str) -> str:
    """Where the file of a member lies.

    Raises:
        ParseError: the unit names none.
    """
    found = _UNIT.fullmatch(unit)
    if found is None:
        raise ParseError(f"{unit!r} names no member of a statement data set")
    return f"edgar/meta/{found['member']}/{found['quarter']}.parquet"


def make(unit: str, body: Body | None, target: BinaryIO) -> Made:
    """Write the file of a member.

    Raises:
        ParseError: it is no such member.
    """
    name = unit.partition("/")[2]
    if body is None:
        set_files.write_nothing(name, target)
        return Made(0)
    return set_files.convert(name, body, target)


def streams(*, numbers: bool) -> tuple[Stream, Stream]:
    """Return the stream that looks for sets and the one that makes files of them; `numbers`: of the numbers too."""
    sets = Stream(
        name=SETS,
        title="Quarterly statement data sets: submissions, presentation and tags",
        tables=(),
        schedule=DAILY,
        calendar="DAILY",
        host_group=HOST_GROUP,
        budget=_BUDGET,
        parser_version=1,
        plan=partial(plan, numbers=numbers),
        classify=classify,
        parse=parse,
        first_session=quarters.FIRST.last_day,
        chunks=chunks,
        is_of=is_of,
        empty_can_be_right=True,
        job="statements",
        # A quarter comes weeks after its end, on a day that nobody announces.
        sla_eligible=False,
        known_key=lambda key: quarters.named(key) is not None,
        keys_are=KEYS_ARE,
    )
    files = Stream(
        name=STATEMENTS,
        title="One file for each member of a quarter's statement data set",
        tables=(),
        schedule=sets.schedule,
        calendar=sets.calendar,
        host_group=HOST_GROUP,
        budget=_BUDGET,
        parser_version=1,
        plan=_plan_files,
        classify=lambda answer: AnswerClass.ERROR,
        parse=parse,
        first_session=sets.first_session,
        is_of=is_of,
        job="statements",
        sla_eligible=False,
        snapshot_only="it makes files of what edgar.statement_sets holds; use mode=replay to make them again.",
        known_key=sets.known_key,
        keys_are=KEYS_ARE,
        making=Making(SETS, path_of, make),
    )
    return sets, files


def _plan_files(ask: Ask) -> Iterator[Request]:
    """Name the units of quarters; they are read from what is held, and nobody is asked."""
    for key in dict.fromkeys(ask.keys):
        quarter = quarters.named(key)
        for member in (*USUAL, NUMBERS) if quarter is not None else ():
            unit = f"{quarter.name}/{member}" if quarter else ""
            yield Request(key=unit, unit=unit, url=WWW, read_from=(SETS, unit))
