"""Requests that an upstream counts by key and day, and the connection that outlives its server's patience."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from psycopg.pq import TransactionStatus

from include.contract import Answer, AnswerClass, CycleStatus, HostGroup, Mode, Outcome, Quota, QuotaUsedUp
from include.engine import apply as applying
from include.engine import credentials, cycle, db, hosts
from include.engine.db import Line, connect
from include.engine.lease import TTL_SECONDS
from include.engine.surrender import WarehouseAway
from include.sources.finra import SOURCE
from tests.engine import toy
from tests.engine.cdn import Trouble
from tests.engine.desk import MONDAY, TUESDAY, WEDNESDAY, Desk, beside, ny

SEOUL = ZoneInfo("Asia/Seoul")
SUCCESS, PENDING, BUDGET = CycleStatus.SUCCESS, CycleStatus.PENDING, CycleStatus.BUDGET_EXHAUSTED
NAMES = ("f1", "f2", "f3", "f4", "f5")
SPENT = Trouble(200, body=b'{"status": "020"}')
KEYED = replace(SOURCE, key_header="X-Key", several_keys=True)


def classify(answer: Answer) -> AnswerClass:
    with answer.body.open() as body:
        if b'"020"' in body.read(200):
            raise QuotaUsedUp
    return toy.classify(answer)


def group(requests: int) -> HostGroup:
    return HostGroup("toy", timedelta(0), quota=Quota(requests, "Asia/Seoul"))


@pytest.fixture
def desk(desk: Desk) -> Desk:
    toy.at(desk, toy.files(*NAMES, host_group=group(3), classify=classify))
    for day in (MONDAY, TUESDAY, WEDNESDAY):
        for name in NAMES:
            desk.cdn.files[toy.file(name, day)] = toy.lines({f"{name}-{day}": 1})
    return desk


def hold(desk: Desk, password: str) -> None:
    """The keys of the connection."""
    reach = credentials.build(KEYED, host="", password=password, sandbox_url=desk.cdn.url)
    desk.worker_changes["credentials"] = reach


def ledger(desk: Desk) -> dict[tuple[str, date], int]:
    rows = desk.sql("select * from collect.key_usage order by key_fingerprint, usage_date")
    return {(row["key_fingerprint"], row["usage_date"]): row["used"] for row in rows}


def keys_asked(desk: Desk) -> list[str]:
    return [one.headers.get("x-key", "") for one in desk.cdn.requests]


def test_a_poll_whose_quota_is_used_up_ends_out_of_budget_and_the_next_day_goes_on(desk: Desk) -> None:
    verdict = desk.poll()
    assert (verdict.status, verdict.outcome) == (BUDGET, Outcome.SUCCESS)
    row = desk.cycle()
    assert (row["budget_exhausted_reason"], row["detail_request_count"], row["detail_skipped_count"]) == ("QUOTA", 3, 2)
    assert len(desk.cdn.requests) == 3
    assert len(toy.values(desk)) == 3
    assert desk.checkpoint() is None
    # Tuesday evening in New York is Wednesday in Seoul, which is the upstream's day.
    assert ledger(desk) == {("none", WEDNESDAY): 3}
    toy.use(desk, replace(desk.stream, host_group=group(20)))
    desk.at(ny(WEDNESDAY))
    assert desk.poll().status is SUCCESS
    assert len(toy.values(desk)) == 10
    assert len(desk.cdn.requests) == 3 + 2 + 5


def test_a_window_that_begins_with_the_quota_used_up_sends_nothing(desk: Desk) -> None:
    desk.poll()
    desk.at(datetime(2026, 9, 16, 23, 0, tzinfo=SEOUL))
    desk.sql("update collect.cycles set window_start = window_start - interval '1 day', slot = 'before'")
    desk.at(datetime(2026, 9, 16, 23, 30, tzinfo=SEOUL))
    asked = len(desk.cdn.requests)
    verdict = desk.poll()
    assert verdict.status is BUDGET
    assert len(desk.cdn.requests) == asked


def test_a_chunk_whose_quota_is_used_up_waits_for_its_renewal_and_loses_no_attempt(desk: Desk) -> None:
    request = desk.request(Mode.BACKFILL, TUESDAY)
    desk.begin(request)
    (verdict,) = desk.work_off(request, waiting=False)
    assert (verdict.status, verdict.is_held) == (PENDING, True)
    renewal = datetime(2026, 9, 17, 0, 0, tzinfo=SEOUL)
    assert verdict.next_eligible_at == desk.cycle()["next_eligible_at"] == renewal
    assert "2026-09-17 00:00 KST" in verdict.words
    assert desk.cycle()["failed_attempts"] == 0
    verdicts = desk.work_off(request)
    assert verdicts[-1].status is SUCCESS
    assert desk.now() >= renewal
    assert Counter(desk.cdn.asked()) == Counter(toy.file(name, TUESDAY) for name in NAMES)


def test_the_next_key_is_used_when_the_one_before_has_no_requests_left(desk: Desk) -> None:
    hold(desk, "first-key, second-key")
    assert desk.poll().status is SUCCESS
    assert keys_asked(desk) == ["first-key"] * 3 + ["second-key"] * 2
    prints = {credentials.fingerprint("first-key"): 3, credentials.fingerprint("second-key"): 2}
    assert {key: used for (key, _), used in ledger(desk).items()} == prints
    tables = desk.sql(
        "select quote_ident(table_schema) || '.' || quote_ident(table_name) as name from information_schema.tables"
        " where table_schema in ('collect', 'market', 'ops') and table_type = 'BASE TABLE'"
    )
    for table in tables:
        assert desk.one(f"select count(*) as n from {table['name']} t where t::text like '%-key%'")["n"] == 0


def test_a_key_that_the_upstream_calls_used_up_is_not_used_again_that_day(desk: Desk) -> None:
    """Somebody else used it too, or the limit is another one: the upstream's word counts."""
    toy.use(desk, replace(desk.stream, host_group=group(100)))
    hold(desk, "first-key,second-key")
    desk.cdn.troubles[toy.file("f2", TUESDAY)].append(SPENT)
    assert desk.poll().status is SUCCESS
    assert keys_asked(desk) == ["first-key", "first-key", "second-key", "second-key", "second-key", "second-key"]
    assert ledger(desk)[credentials.fingerprint("first-key"), WEDNESDAY] == 100
    assert len(toy.values(desk)) == 5
    (error,) = desk.sql("select error, http_status from collect.fetches where answer_class = 'error'")
    assert "no requests left today" in error["error"]


def test_a_worker_that_is_stopped_before_the_next_key_is_tried_has_no_answer_yet(desk: Desk) -> None:
    """That it is used up is said of the key, not of what was asked for."""
    refused: list[Answer] = []

    def noted(answer: Answer) -> AnswerClass:
        try:
            return classify(answer)
        except QuotaUsedUp:
            refused.append(answer)
            raise

    toy.use(desk, replace(desk.stream, host_group=group(100), classify=noted))
    hold(desk, "first-key,second-key")
    desk.cdn.troubles[toy.file("f2", TUESDAY)].append(SPENT)
    assert desk.poll(stop=lambda: bool(refused)).is_stopped
    verdict = desk.poll()
    assert (verdict.status, verdict.outcome) == (SUCCESS, Outcome.SUCCESS)
    assert keys_asked(desk) == ["first-key"] * 2 + ["second-key"] * 4
    assert len(toy.values(desk)) == 5


def test_when_the_upstream_calls_every_key_used_up_the_poll_is_out_of_budget(desk: Desk) -> None:
    toy.use(desk, replace(desk.stream, host_group=group(100)))
    hold(desk, "first-key,second-key")
    desk.cdn.troubles[toy.file("f2", TUESDAY)].extend([SPENT, SPENT])
    verdict = desk.poll()
    assert (verdict.status, desk.cycle()["budget_exhausted_reason"]) == (BUDGET, "QUOTA")
    desk.at(datetime(2026, 9, 17, 0, 1, tzinfo=SEOUL))
    (done,) = desk.backfill(TUESDAY)
    assert done.status is SUCCESS
    assert keys_asked(desk)[-1] == "first-key"
    assert len(toy.values(desk)) == 5


def test_a_stream_leaves_to_others_what_it_was_told_to_leave(desk: Desk) -> None:
    toy.use(desk, replace(desk.stream, leaves_quota=2))
    assert desk.poll().status is BUDGET
    assert len(desk.cdn.requests) == 1
    with connect(desk.url, autocommit=True) as connection:
        turns = [take(connection), take(connection)]
        assert all(turn.key == "none" for turn in turns)
        with pytest.raises(hosts.UsedUp):
            take(connection)


def take(connection: Any) -> hosts.Turn:
    return hosts.wait_for_turn(connection, "toy", patient=False, may_go_on=lambda: True, nap=lambda seconds: None)


def test_workers_side_by_side_never_spend_more_than_the_quota(desk: Desk) -> None:
    toy.use(desk, replace(desk.stream, host_group=group(40)))

    def spend() -> int:
        spent = 0
        with connect(desk.url, autocommit=True) as connection:
            while True:
                try:
                    take(connection)
                except hosts.UsedUp:
                    return spent
                spent += 1

    workers = [beside(spend) for _ in range(6)]
    assert sum(worker.result() for worker in workers) == 40
    assert ledger(desk) == {("none", WEDNESDAY): 40}


def test_a_blocked_group_and_a_patient_worker_take_nothing_off_the_ledger(desk: Desk) -> None:
    with connect(desk.url, autocommit=True) as connection:
        hosts.block(connection, "toy", "a page for people")
        with pytest.raises(hosts.Blocked):
            take(connection)
    assert ledger(desk) == {}


def test_a_key_may_stand_in_a_parameter_a_header_or_the_address(desk: Desk) -> None:
    kinds = {
        "key_param": lambda one: "k=one%2Ftwo" in one.path,
        "key_header": lambda one: one.headers.get("k") == "one/two",
        "key_in_path": lambda one: "/one%2Ftwo/" in one.path,
    }
    for kind, is_there in kinds.items():
        source = replace(SOURCE, several_keys=True, **{kind: True if kind == "key_in_path" else "k"})
        reach = credentials.build(source, host="", password="one/two", sandbox_url=desk.cdn.url)
        assert "one/two" not in repr(reach) + repr(reach.keys)
        plan = desk.stream.plan
        stream = toy.files("f1", host_group=group(100))
        if kind == "key_in_path":
            plan = stream.plan
            stream = replace(
                stream,
                plan=lambda ask, plan=plan: [
                    replace(r, url=r.url.replace(".example", ".example/{key}")) for r in plan(ask)
                ],
            )
        toy.use(desk, stream)
        desk.cdn.forget()
        desk.do(desk.request(Mode.BACKFILL, TUESDAY, run_id=f"{kind}-keyed"), credentials=reach)
        assert is_there(desk.cdn.requests[-1]), kind
    assert "one" not in json.dumps([row["error"] for row in desk.sql("select error from collect.fetches")])


# --- a connection that breaks while the upstream answers


@contextmanager
def broken_while_asked(desk: Desk) -> Iterator[list[str]]:
    """Each request's bookkeeping connection is gone before its answer comes."""
    seen: list[str] = []

    def before(name: str) -> None:
        seen.append(name)
        desk.sql(
            "select pg_terminate_backend(pid) from pg_stat_activity"
            " where datname = current_database() and application_name = 'daybook slice'"
        )

    desk.cdn.before = before
    yield seen
    desk.cdn.before = lambda name: None


@pytest.mark.parametrize("mode", [Mode.POLL, Mode.BACKFILL])
def test_what_was_received_while_the_connection_broke_is_recorded_and_not_asked_again(desk: Desk, mode: Mode) -> None:
    toy.use(desk, replace(desk.stream, host_group=HostGroup("toy", timedelta(0))))
    with broken_while_asked(desk) as seen:
        verdict = desk.poll() if mode is Mode.POLL else desk.backfill(TUESDAY)[-1]
    assert verdict.status is SUCCESS
    assert seen == [toy.file(name, TUESDAY) for name in NAMES]
    assert desk.one("select count(*) as n from collect.fetches")["n"] == 5
    assert len(toy.values(desk)) == 5


def test_a_lane_makes_one_connection_for_all_its_chunks_and_another_where_that_breaks(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    toy.use(desk, replace(desk.stream, host_group=HostGroup("toy", timedelta(0))))
    made: list[str] = []

    def counted(url: str, *, application: str = "daybook", **more: Any) -> Any:
        made.append(application)
        return connect(url, application=application, **more)

    for module in (db, applying):
        monkeypatch.setattr(module, "connect", counted)
    desk.at(ny(WEDNESDAY, 21))
    request = desk.request(Mode.BACKFILL, MONDAY, WEDNESDAY)
    desk.begin(request)
    made.clear()
    with cycle.keeping_a_line(desk.worker()) as lane:
        assert lane.line is not None
        for number in range(3):
            if number == 2:
                (gone,) = desk.sql(
                    "select pg_terminate_backend(pid) as is_ended from pg_stat_activity"
                    " where datname = current_database() and application_name = 'daybook slice'"
                )
                assert gone["is_ended"]
            verdict = cycle.work(lane, desk.stream, Mode.BACKFILL, request.name)
            assert verdict is not None
            assert verdict.status is SUCCESS
            held = lane.line.connection
            assert (held.autocommit, held.info.transaction_status) == (True, TransactionStatus.IDLE)
    assert [name for name in made if name in ("daybook slice", "daybook apply")] == ["daybook slice"] * 2
    assert len(toy.values(desk)) == 15


@pytest.mark.parametrize("mode", [Mode.POLL, Mode.BACKFILL])
def test_a_warehouse_that_stays_away_leaves_the_cycle_to_its_lease_and_all_that_was_stored_is_kept(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, mode: Mode
) -> None:
    """For longer than a connection is patient, in simulated time; the third answer finds nobody to note it."""
    toy.use(desk, replace(desk.stream, host_group=HostGroup("toy", timedelta(0))))
    request = desk.request(mode, TUESDAY, run_id="away")
    if mode is Mode.BACKFILL:
        desk.begin(request)
    real, third = db.connect, toy.file("f3", TUESDAY)

    def gone(url: str, *, application: str = "", **more: Any) -> Any:
        if application == "daybook slice":
            raise db.psycopg.OperationalError("connection refused\nIs the server running?")
        return real(url, application=application, **more)

    def before(name: str) -> None:
        if name == third:
            patch.setattr(db, "connect", gone)
            desk.sql(
                "select pg_terminate_backend(pid) from pg_stat_activity"
                " where datname = current_database() and application_name = 'daybook slice'"
            )

    with monkeypatch.context() as patch:
        desk.cdn.before = before
        with pytest.raises(WarehouseAway) as caught:
            desk.poll() if mode is Mode.POLL else desk.work_off(request)
    desk.cdn.before = lambda name: None
    assert db.PATIENCE_SECONDS <= sum(desk.naps) < db.PATIENCE_SECONDS + 6
    words = str(caught.value)
    assert "the warehouse does not answer (connection refused). Every answer that was stored is kept." in words
    assert ("the next one applies what is stored" if mode is Mode.POLL else "the chunk waits again") in words
    assert "Is the server" not in words
    assert desk.cycle()["cycle_status"] == CycleStatus.RUNNING
    assert desk.one("select count(*) as n from collect.fetches where applied_at is null")["n"] == 2
    desk.advance(seconds=TTL_SECONDS)
    if mode is Mode.POLL:
        assert desk.tick() is None
        assert desk.cycle()["failure_reason"] == "lease expired"
        desk.at(ny(TUESDAY, 19, 16))
        verdict = desk.poll()
    else:
        verdict = desk.work_off(request)[-1]
    assert (verdict.status, len(toy.values(desk))) == (SUCCESS, 5)
    # What was written down is not asked for again.
    assert Counter(desk.cdn.asked()) == {toy.file(name, TUESDAY): 2 if name == "f3" else 1 for name in NAMES}


def test_a_row_whose_commit_nobody_could_confirm_is_written_once(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    toy.use(desk, replace(desk.stream, host_group=HostGroup("toy", timedelta(0))))
    from include.engine import fetches

    real, failed = fetches.record, []

    def record(connection: Any, **values: Any) -> int:
        number = real(connection, **values)
        if not failed:
            failed.append(number)
            connection.close()
            raise db.psycopg.OperationalError("the connection was lost")
        return number

    monkeypatch.setattr(fetches, "record", record)
    assert desk.poll().status is SUCCESS
    assert desk.one("select count(*) as n, count(distinct request_key) as keys from collect.fetches") == {
        "n": 5,
        "keys": 5,
    }


def test_a_line_is_given_up_only_after_its_patience(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    naps: list[float] = []
    line = Line(desk.url, application="a test", nap=naps.append)

    def work(connection: Any) -> None:
        connection.close()
        raise db.psycopg.OperationalError("gone")

    with pytest.raises(db.psycopg.OperationalError, match="gone"):
        line.kept(work)
    assert db.PATIENCE_SECONDS <= sum(naps) < db.PATIENCE_SECONDS + 6
    assert line.kept(lambda connection: connection.execute("select 1 as one").fetchone()) == {"one": 1}
    line.close()


def test_an_error_that_is_no_broken_connection_is_not_repeated(desk: Desk) -> None:
    line = Line(desk.url, application="a test")
    tries: list[int] = []

    def work(connection: Any) -> None:
        tries.append(1)
        connection.execute("select 1 / 0")

    with pytest.raises(db.psycopg.errors.DivisionByZero):
        line.kept(work)
    assert tries == [1]
    line.close()
