"""A small source made up for the engine's tests: items with a value, in files of any size and in lists with pages.

Promises: it uses everything that a source may declare and nothing of a real one; its rows come as a stream.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

from include.contract import (
    Answer,
    AnswerClass,
    Ask,
    Batch,
    Budget,
    Column,
    HostGroup,
    Parsed,
    ParseError,
    Rejected,
    Request,
    Rule,
    Stream,
    Table,
    Unit,
)
from include.sources.finra.streams import SHORT_VOLUME_STREAM
from tests.engine.desk import Desk

ITEMS = Table(
    schema="market",
    name="toy_items",
    comment="Items made up for a test",
    columns=(
        Column("item", "text", "Name"),
        Column("day", "date", "Day", nullable=True),
        Column("value", "bigint", "Value", nullable=True),
        Column("version", "integer", "Number that the upstream gives to each change"),
    ),
    key=("item",),
    session_date="day",
    rules=(Rule("value is not negative", "not_negative", ("value",)),),
)
VERSIONED = replace(ITEMS, version="version")

MAKE = """
create table market.toy_items (item text primary key, day date, value bigint, version integer not null,
    unit text not null, fetch_id bigint not null, sent_at timestamptz(6) not null, parser_version integer not null,
    cycle_id bigint not null, attempt integer not null, extra jsonb);
create table market.toy_items_history (like market.toy_items, ended_at timestamptz(6) not null, reason text not null,
    primary key (item, sent_at, reason, parser_version))
"""


def lines(rows: Mapping[str, Any] | list[dict[str, Any]]) -> bytes:
    """A file: item → value, or items with more; one JSON object a line, and the number of lines at the end."""
    given = [{"item": k, "value": v} for k, v in rows.items()] if isinstance(rows, Mapping) else rows
    return "".join(f"{json.dumps(row)}\n" for row in [*given, {"rows": len(given)}]).encode()


def classify(answer: Answer) -> AnswerClass:
    """What the status says."""
    if answer.status == 200:
        return AnswerClass.DATA
    if answer.status == 304:
        return AnswerClass.UNCHANGED
    if answer.status in (403, 404):
        return AnswerClass.NOT_YET if answer.request.expected else AnswerClass.ABSENT
    return AnswerClass.ERROR


def parse_into(table: Table) -> Any:
    """A parser that gives its rows as they are read."""

    def parse(unit: Unit) -> Parsed:
        rejected: list[Rejected] = []

        def rows() -> Iterator[tuple[Any, ...]]:
            for answer in unit.answers:
                count = None
                seen = 0
                with answer.body.open() as stream:
                    for number, line in enumerate(stream, start=1):
                        row = json.loads(line)
                        if "rows" in row:
                            count = row["rows"]
                            break
                        seen += 1
                        if "item" not in row:
                            rejected.append(Rejected(f"line {number}", "it has no name", line.decode()))
                            continue
                        day = row.get("day", unit.session_date)
                        day = date.fromisoformat(day) if isinstance(day, str) else day
                        yield row["item"], day, row.get("value"), row.get("version", 1), None
                if count != seen:
                    raise ParseError(f"the file ends after {seen} rows: it was cut")

        return Parsed((Batch(table, rows()),), rejected)

    return parse


def files(*names: str, table: Table = ITEMS, **more: Any) -> Stream:
    """A stream of some files a day."""

    def plan(ask: Ask) -> Iterator[Request]:
        keys = [f"{name}/{day}" for day in (*ask.sessions, *ask.closed) for name in names]
        for key in dict.fromkeys([*keys, *ask.pending]):
            name, _, day = key.partition("/")
            if not ask.keys or name in ask.keys:
                yield request(name, date.fromisoformat(day))

    settings: dict[str, Any] = {
        "name": "toy.items",
        "title": "Toy",
        "tables": (table,),
        "plan": plan,
        "classify": classify,
        "parse": parse_into(table),
        "parser_version": 1,
        "host_group": HostGroup("toy", timedelta(0)),
        "budget": Budget(day_items=10**9, slice_items=10**9, reason="a test"),
        "recheck": None,
        "known_key": lambda key: True,
    }
    return replace(SHORT_VOLUME_STREAM, **{**settings, **more})


def request(name: str, day: date, **more: Any) -> Request:
    """The request for a file of a day."""
    key = f"{name}/{day}"
    return Request(key=key, url=f"https://toy.example/{name}-{day:%Y%m%d}", unit=key, session_date=day, **more)


def file(name: str, day: date) -> str:
    """What the CDN calls it."""
    return f"{name}-{day:%Y%m%d}"


def at(desk: Desk, stream: Stream) -> Desk:
    """The desk with the toy's table, working on one of its streams."""
    desk.sql(MAKE)
    return use(desk, stream)


def use(desk: Desk, stream: Stream) -> Desk:
    """The desk working on another form of the stream."""
    desk.stream = stream
    desk.declare()
    return desk


def values(desk: Desk) -> dict[str, int]:
    """Item → value."""
    return {row["item"]: row["value"] for row in desk.sql("select item, value from market.toy_items order by item")}


def history(desk: Desk) -> list[tuple[str, int, str]]:
    """What was once right: item, value, why it is no longer."""
    rows = desk.sql("select item, value, reason from market.toy_items_history order by item, sent_at, reason")
    return [(row["item"], row["value"], row["reason"]) for row in rows]
