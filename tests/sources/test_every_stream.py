"""The entry exam of a source: what every stream promises, whatever it collects.

A new source passes it by its declaration, its fixtures and its stand-in in the sandbox; nothing here knows one by name.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import date, datetime, timedelta
from urllib.parse import urlsplit

import pytest

from include import registry
from include.calendars import calendar, next_instant
from include.contract import (
    Answer,
    AnswerClass,
    AnswerError,
    Ask,
    CycleStatus,
    DefiniteRefusal,
    HostGroup,
    Mode,
    ParseError,
    QuotaUsedUp,
    Request,
    Stream,
    Unit,
)
from include.engine import cycle, lease, windows
from include.engine.stage import Names
from tests.fixtures_sandbox import Start
from tests.sources import strange
from tests.sources.answers import Fixture, answer, fixtures_of
from tests.sources.places import Place, copy_ledger

STREAMS = registry.streams()
EACH = pytest.mark.parametrize("stream", STREAMS, ids=[stream.name for stream in STREAMS])
# Those that ask somebody: what makes files of what others hold has no answers.
ASKING = [stream for stream in STREAMS if stream.making is None]
EACH_ASKING = pytest.mark.parametrize("stream", ASKING, ids=[stream.name for stream in ASKING])

# A Tuesday in a week without a holiday in New York or Seoul.
START = datetime.fromisoformat("2026-09-15T00:00:00-04:00")
SECRETS = re.compile(r"(api_?key|apikey|token|secret|password|crtfc)", re.IGNORECASE)


def some_sessions(stream: Stream, most: int = 3) -> tuple[date, ...]:
    days = calendar(stream.calendar).sessions(date(2026, 9, 8), date(2026, 9, 15))
    return tuple(reversed(days[-most:]))


def some_ask(stream: Stream, mode: Mode = Mode.POLL, **more: tuple[date, ...] | tuple[str, ...]) -> Ask:
    """Some days, and for a stream that another one tells what to ask about, what its fixtures are about."""
    ask = Ask(mode, sessions=some_sessions(stream), **more)  # type: ignore[arg-type]
    if stream.subjects is None or list(stream.plan(replace(ask, mode=Mode.POLL, pending=()))):
        return ask
    keys = [each.key for each in fixtures_of(stream) if each.answer_class == "data"]
    return replace(ask, subjects=tuple(sorted(set(keys))))


def some_requests(stream: Stream) -> list[Request]:
    return list(stream.plan(some_ask(stream)))


# --- the declaration


@EACH
def test_a_stream_is_declared_so_that_an_operator_understands_it(stream: Stream) -> None:
    source = registry.source(stream.source)
    assert stream in source.streams
    assert re.fullmatch(r"[a-z][a-z0-9]*\.[a-z][a-z0-9_]*", stream.name)
    assert stream.title
    assert source.terms
    assert source.hosts
    assert all(host.startswith("https://") for host in source.hosts)
    assert stream.parser_version >= 1
    assert stream.keys_are
    assert registry.stream(stream.name) is stream


@EACH
def test_its_schedule_leaves_room_for_its_tries(stream: Stream) -> None:
    schedule = stream.schedule
    first = next_instant(schedule.cron, schedule.timezone, START)
    second = next_instant(schedule.cron, schedule.timezone, first)
    assert timedelta(0) < schedule.retry_first <= schedule.last_try
    assert timedelta(0) < schedule.retry_every
    assert schedule.allowance > timedelta(0)
    assert second > first
    assert all(offset > timedelta(0) for offset in schedule.make_up)
    assert list(schedule.make_up) == sorted(set(schedule.make_up))
    assert calendar(stream.calendar).is_session(some_sessions(stream)[0])


@EACH
def test_a_larger_budget_than_the_usual_one_has_a_reason(stream: Stream) -> None:
    usual = replace(stream.budget, reason="").__class__()
    exceeds = any(
        getattr(stream.budget, name) > getattr(usual, name) for name in vars(usual) if name not in ("reason",)
    )
    assert bool(stream.budget.reason) or not exceeds
    # A slice ends well within its lease.
    assert stream.budget.slice_seconds < lease.TTL_SECONDS


@EACH
def test_its_tables_can_be_merged(stream: Stream) -> None:
    for table in stream.tables:
        assert Names(table).parts
        assert set(table.key) <= set(table.column_names)
        assert table.session_date is None or table.session_date in table.column_names
        assert all(not column.nullable for column in table.columns if column.name in table.key)
        assert all(column.comment for column in table.columns)
        assert {name for rule in table.rules for name in rule.columns} <= set(table.column_names)
        assert table.comment
        reserved = {
            "unit",
            "fetch_id",
            "sent_at",
            "parser_version",
            "cycle_id",
            "attempt",
            "extra",
            "ended_at",
            "reason",
        }
        assert not reserved & set(table.column_names)


# --- the plan


@EACH_ASKING
@pytest.mark.parametrize("mode", [Mode.POLL, Mode.BACKFILL])
def test_a_plan_is_finite_and_the_same_each_time(stream: Stream, mode: Mode) -> None:
    ask = some_ask(stream, mode, closed=(date(2026, 9, 7),) if mode is Mode.BACKFILL else ())
    first, second = list(stream.plan(ask)), list(stream.plan(ask))
    assert first == second
    assert 0 < len(first) < 100_000
    keys = [request.key for request in first]
    assert len(set(keys)) == len(keys)


@EACH_ASKING
def test_a_request_goes_to_its_sources_hosts_and_tells_no_secret(stream: Stream) -> None:
    hosts = {urlsplit(host).netloc for host in registry.source(stream.source).hosts}
    for request in some_requests(stream):
        parts = urlsplit(request.url)
        assert parts.scheme == "https"
        assert parts.netloc in hosts
        assert not parts.query
        assert request.unit
        for text in (request.key, request.unit, request.url, *(name for name, _ in request.params)):
            assert not SECRETS.search(text), text
        assert len(request.key) <= 300


@EACH_ASKING
def test_a_pending_key_is_planned_again_as_what_it_was(stream: Stream) -> None:
    for request in some_requests(stream):
        (again,) = stream.plan(Ask(Mode.POLL, pending=(request.key,)))
        assert (again.key, again.unit, again.url, again.session_date) == (
            request.key,
            request.unit,
            request.url,
            request.session_date,
        )


@EACH_ASKING
def test_a_pending_key_that_is_due_anyway_is_asked_once(stream: Stream) -> None:
    requests = some_requests(stream)
    ask = some_ask(stream, pending=tuple(request.key for request in requests))
    keys = [request.key for request in stream.plan(ask)]
    assert sorted(keys) == sorted(request.key for request in requests)


@EACH_ASKING
def test_an_empty_ask_plans_nothing(stream: Stream) -> None:
    assert stream.listing or list(stream.plan(Ask(Mode.POLL))) == []


@EACH_ASKING
def test_newer_sessions_come_first(stream: Stream) -> None:
    dates = [request.session_date for request in some_requests(stream) if request.session_date]
    assert dates == sorted(dates, reverse=True)


@EACH
def test_a_key_that_nobody_knows_is_not_taken(stream: Stream) -> None:
    assert not stream.known_key("no such key, surely")


# --- answers


@EACH_ASKING
def test_there_are_fixtures_for_what_it_may_answer(stream: Stream) -> None:
    classes = {fixture.answer_class for fixture in fixtures_of(stream)}
    assert {"data", "error"} <= classes
    assert not stream.empty_can_be_right or not stream.tables or "empty" in classes


@EACH_ASKING
def test_each_fixture_is_told_for_what_it_is(stream: Stream) -> None:
    for fixture in fixtures_of(stream):
        given = _answer_of(stream, fixture)
        assert told(stream, given) == fixture.answer_class, fixture.path.name


@EACH_ASKING
def test_each_fixture_is_read_as_it_says(stream: Stream) -> None:
    for fixture in fixtures_of(stream):
        if fixture.answer_class not in ("data", "empty"):
            continue
        given = _answer_of(stream, fixture)
        unit = Unit(given.request.unit, given.request.session_date, (given,))
        if refusal := fixture.reading.get("refused"):
            # Of a large unit it may show only while the rows come.
            with pytest.raises(ParseError, match=re.escape(refusal)):
                [list(batch.rows) for batch in stream.parse(unit).batches]
            continue
        parsed, again = stream.parse(unit), stream.parse(unit)
        read = [(batch.table, tuple(batch.rows)) for batch in parsed.batches]
        rows = [row for _, rows in read for row in rows]
        assert len(rows) == fixture.reading["rows"], fixture.path.name
        assert rows == [row for batch in again.batches for row in batch.rows]
        assert [each.position for each in parsed.rejected] == fixture.reading.get("rejected", []), fixture.path.name
        assert list(parsed.unknown_columns) == fixture.reading.get("unknown", []), fixture.path.name
        for table, of_table in read:
            assert table in stream.tables
            width = len(table.columns)
            assert all(len(row) in (width, width + 1) for row in of_table)


@EACH_ASKING
def test_strange_answers_are_read_refused_or_put_aside_and_never_stumbled_over(stream: Stream) -> None:
    with_data = [(each, each.path.read_bytes()) for each in fixtures_of(stream) if each.answer_class == "data"]
    for fixture, body in [(each, body) for each, body in with_data if len(body) < 6_000][:1]:
        (request,) = stream.plan(Ask(Mode.POLL, pending=(fixture.key,)))
        strange.check(stream, request, body)


def told(stream: Stream, given: Answer) -> AnswerClass:
    """What an answer is; a refusal in words is an error, as the engine takes it."""
    try:
        return stream.classify(given)
    except (AnswerError, DefiniteRefusal, QuotaUsedUp):
        return AnswerClass.ERROR


def _answer_of(stream: Stream, fixture: Fixture) -> Answer:
    (request,) = stream.plan(Ask(Mode.POLL, pending=(fixture.key,)))
    return answer(request, fixture.path.read_bytes(), fixture.status)


@EACH_ASKING
def test_classes_are_told_apart(stream: Stream) -> None:
    """What is never data, whatever the stream: a page for people, nothing at all, a server's trouble."""
    request = some_requests(stream)[0]
    page = b"<!DOCTYPE html><html><head><title>Blocked</title></head><body>Are you human?</body></html>"
    parsed = {AnswerClass.DATA, AnswerClass.EMPTY}
    for status in (200, 403, 404, 429, 500, 503):
        assert told(stream, answer(request, page, status, **{"content-type": "text/html"})) not in parsed, status
    for status in (200, 204, 500):
        assert told(stream, answer(request, b"", status)) not in parsed, status
    for status in (400, 401, 429, 500, 502, 503):
        assert told(stream, answer(request, b"trouble", status)) is AnswerClass.ERROR, status
    assert told(stream, answer(request, b"", 304)) is AnswerClass.UNCHANGED


# --- poll = backfill = replay, on days that the sandbox generates


def shortened(stream: Stream, most: int = 20) -> Stream:
    """The stream itself, or limited to some of its keys where a session has very many requests."""
    requests = some_requests(stream)
    # A unit begins with the key that an operator would name.
    names = list(dict.fromkeys(request.unit.partition("/")[0] for request in requests))
    if len(requests) <= 3 * most or not all(map(stream.known_key, names)):
        return stream
    keys, named = tuple(names[:: len(names) // most + 1]), stream.chunks
    return replace(
        stream,
        plan=lambda ask: stream.plan(replace(ask, keys=keys)),
        chunks=None if named is None else lambda span: named(replace(span, keys=keys)),
    )


@EACH_ASKING
def test_poll_backfill_and_replay_give_the_same_tables(
    stream: Stream, place: Callable[[], Place], sandbox: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    if stream.snapshot_only:
        pytest.skip("a snapshot of today has no backfill")
    if not list(stream.plan(Ask(Mode.POLL, sessions=some_sessions(stream)))):
        pytest.skip("another stream tells it what to ask about: its source's own tests try the chain")
    stream = replace(shortened(stream), host_group=HostGroup(stream.host_group.name, timedelta(0)))
    polled, filled, replayed = place(), place(), place()
    instants, at = [], START
    for _ in range(3):
        at = next_instant(stream.schedule.cron, stream.schedule.timezone, at)
        instants.append(at)
    polled.at(instants[0])
    running = sandbox(clock=polled.now, companies=25)
    polled.sandbox_url = filled.sandbox_url = running.url
    sessions = []
    for instant in instants:
        polled.at(instant + timedelta(minutes=5))
        windows.declare(polled.url, (stream,))
        found = windows.open_due(polled.url, stream)
        assert found is not None
        sessions.append(found.row["session_date"])
        while (verdict := cycle.work(polled.worker(stream), stream, Mode.POLL, None)) is not None:
            assert verdict.status in (CycleStatus.SUCCESS, CycleStatus.PENDING), verdict.words
        assert windows.standing(polled.url, stream).newest["cycle_status"] == "SUCCESS"  # type: ignore[index]
    by_poll = polled.tables(stream)
    assert all(by_poll[table.qualified] for table in stream.tables)

    filled.at(instants[-1] + timedelta(minutes=6))
    windows.declare(filled.url, (stream,))
    filled.do(stream, Mode.BACKFILL, min(sessions), max(sessions))
    assert filled.tables(stream) == by_poll

    replayed.at(instants[-1] + timedelta(minutes=7))
    replayed.raw = polled.raw
    copy_ledger(polled.url, replayed.url)
    windows.declare(replayed.url, (stream,))
    before = len(running.requests())
    replayed.do(stream, Mode.REPLAY, min(sessions), max(sessions))
    assert replayed.tables(stream, "sent_at", "fetch_id") == polled.tables(stream, "sent_at", "fetch_id")
    assert len(running.requests()) == before
