"""The lookout: what is past due, lags, does not come or was not prepared is told once, and so is its recovery."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, timedelta

import pytest

from include.contract import Mode
from include.engine import incidents, lookout
from include.engine.db import connect
from include.engine.lease import claim_on
from tests.engine.seoul import DART, DAY, FINRA, KRX, Seoul, kst, opened

FRIDAY, MONDAY = date(2026, 9, 18), date(2026, 9, 21)


@pytest.fixture
def seoul(database: str) -> Iterator[Seoul]:
    """Wednesday morning in Seoul, ten minutes after KRX's window of 08:10 was due; FINRA's was collected."""
    with opened(database, kst(DAY, 0, 1), (KRX, FINRA)) as here:
        here.dispatch()
        held(here, FINRA.name, date(2026, 9, 15))
        held(here, KRX.name, date(2026, 9, 16))
        here.at(kst(DAY, 7, 40))
        here.work(FINRA, kst(DAY, 7, 35))
        here.at(kst(DAY, 9, 10))
        here.capture()
        here.sql("delete from ops.alerts")
        here.sql("delete from ops.incidents")
        yield here


def held(seoul: Seoul, stream: str, day: date) -> None:
    """Put a stream's checkpoint to a session."""
    seoul.sql(
        "insert into collect.checkpoints (stream, session_date, cycle_id, updated_at)"
        " values (%s, %s, 1, collect.clock())"
        " on conflict (stream) do update set session_date = excluded.session_date",
        stream,
        day,
    )


def look(seoul: Seoul) -> list[str]:
    return lookout.look(seoul.url, seoul.streams)


def still(seoul: Seoul) -> list[str]:
    """Keys of what is open."""
    return [row["incident_key"] for row in incidents.listed(seoul.url)]


# --- windows


def test_a_window_past_due_is_told_once_under_its_own_key(seoul: Seoul) -> None:
    look(seoul)
    look(seoul)
    assert still(seoul) == ["past-due/krx.prices"]
    ((key, text),) = seoul.alerts().items()
    assert key == "past-due/krx.prices/2026-09-15T23:10:00Z"
    assert "window 2026-09-16 08:10 KST, session 2026-09-16 was due at 2026-09-16 09:00 KST and is NOT_STARTED" in text


def test_a_window_within_the_grace_is_not_told(seoul: Seoul) -> None:
    seoul.at(kst(DAY, 9, 4))
    look(seoul)
    assert "past-due/krx.prices/2026-09-15T23:10:00Z" not in seoul.alerts()


def test_its_end_is_told_in_the_transaction_that_ends_it_well_or_by_the_lookout(seoul: Seoul) -> None:
    look(seoul)
    seoul.work(KRX, kst(DAY, 8, 10))
    look(seoul)
    assert still(seoul) == []
    assert list(seoul.alerts().values())[-1].startswith("RECOVERED: no window of krx.prices is past due any more")


def test_an_older_window_that_ends_well_ends_nothing_of_the_one_that_is_past_due(seoul: Seoul) -> None:
    """The tired person who reads RECOVERED would go to bed."""
    look(seoul)
    key = incidents.past_due(KRX.name)
    yesterday, today = kst(DAY - timedelta(days=1), 8, 10), kst(DAY, 8, 10)
    for start, is_open in ((yesterday, True), (today, False)):
        seoul.open(KRX, start)
        with connect(seoul.url, autocommit=True) as connection:
            lease = claim_on(connection, seoul.url, KRX.name, Mode.POLL, None, "a worker")
            assert lease is not None
            incidents.tell_recovery(connection, KRX, lease.cycle, is_partial=False)
        assert (key in still(seoul)) == is_open, start
        seoul.leases[KRX.name] = lease.cycle.cycle_id, lease.token
        seoul.settle(KRX)


def test_a_failed_window_is_over_and_not_past_due(seoul: Seoul) -> None:
    """That it failed is told by who knows it, the second time in a row."""
    seoul.work(KRX, kst(DAY, 8, 10), "FAILED")
    assert look(seoul) == []


def test_a_paused_dag_is_named_as_paused_and_late_all_the_same(seoul: Seoul) -> None:
    lookout.note_paused(seoul.url, {"krx": True, "finra": False})
    look(seoul)
    assert "Its DAG krx is PAUSED in Airflow since 2026-09-16 09:10 KST" in next(iter(seoul.alerts().values()))
    assert seoul.items()["krx.prices"].is_late
    lookout.note_paused(seoul.url, {"krx": False})
    assert seoul.sql("select * from ops.paused_jobs") == []


def test_since_when_a_dag_is_paused_is_kept(seoul: Seoul) -> None:
    for _ in range(2):
        lookout.note_paused(seoul.url, {"krx": True})
        seoul.advance(minutes=2)
    row = seoul.one("select since, seen_at from ops.paused_jobs")
    assert row["seen_at"] - row["since"] >= timedelta(minutes=2)


def test_a_frozen_stream_is_past_due_and_says_by_whom(seoul: Seoul) -> None:
    seoul.sql("select * from collect.control('source', 'krx', 'frozen', 'KRX asked us', 'kim')")
    look(seoul)
    assert "source krx is frozen since 2026-09-16 09:10 KST by kim: KRX asked us" in next(iter(seoul.alerts().values()))


def test_with_dispatch_off_or_out_of_service_nothing_is_expected(seoul: Seoul) -> None:
    look(seoul)
    seoul.sql("select collect.serve('krx.prices', false, 'sold', 'kim')")
    look(seoul)
    assert still(seoul) == []


def test_a_stream_that_came_into_service_after_its_window_is_not_past_due(database: str) -> None:
    with opened(database, kst(DAY, 9, 30), (FINRA,)) as here:
        here.streams = (FINRA, KRX)
        from include.engine import windows

        held(here, FINRA.name, date(2026, 9, 15))
        here.at(kst(DAY, 7, 40))
        here.work(FINRA, kst(DAY, 7, 35))
        here.at(kst(DAY, 9, 30))
        windows.declare(here.url, (KRX,))
        here.at(kst(DAY, 10))
        assert [text for text in look(here) if "krx" in text] == []


def test_a_stream_polled_all_day_is_judged_by_its_last_due_window(database: str) -> None:
    with opened(database, kst(DAY, 9, 9), (DART,)) as here:
        held(here, DART.name, DAY)
        here.work(DART, kst(DAY, 8, 55))
        here.at(kst(DAY, 9, 9, 30))
        assert look(here) == []
        here.at(kst(DAY, 9, 20))
        look(here)
        assert still(here) == ["past-due/dart.disclosures"]


def test_what_is_open_of_a_stream_that_is_declared_no_more_is_closed_with_the_reason(seoul: Seoul) -> None:
    from include.engine import hosts

    aside(seoul)
    with connect(seoul.url, autocommit=True) as connection:
        for key in (incidents.failing(FINRA.name), incidents.given_up(FINRA.name), incidents.run("r", FINRA.name)):
            incidents.open(connection, key=key, severity="error", text="x", stream=FINRA.name)
        hosts.block(connection, "finra", "a page for people")
    ask(seoul, 10, 10)
    look(seoul)
    of_finra = {
        "quarantine/finra.short_volume/parse", "failing/finra.short_volume", "raw/finra", "block/finra",
    }  # fmt: skip
    assert of_finra <= set(still(seoul))
    seoul.sql("delete from ops.alerts")
    seoul.streams = (KRX,)
    for _ in range(2):
        look(seoul)
        assert still(seoul) == ["past-due/krx.prices"]
    told = [text for text in seoul.alerts().values() if "finra" in text]
    assert len(told) == len(of_finra)
    assert all(text.startswith("CLOSED, not mended: ") and "is not in the registry any more" in text for text in told)


def test_a_stream_that_is_declared_no_more_is_not_waited_for_by_those_that_were_late_with_it(database: str) -> None:
    with opened(database, kst(DAY, 0, 1), (KRX, FINRA)) as here:
        here.dispatch()
        here.at(kst(DAY, 9))
        here.capture()
        here.at(kst(DAY, 9, 1))
        here.work(KRX, kst(DAY, 8, 10))
        look(here)
        assert "late/2026-09-16" in still(here)
        here.streams = (KRX,)
        look(here)
        assert "late/2026-09-16" not in still(here)


def test_what_was_wrong_with_the_windows_of_a_stream_out_of_service_is_closed_and_what_can_be_decided_stays(
    seoul: Seoul,
) -> None:
    aside(seoul)
    seoul.work(KRX, kst(DAY, 8, 10), abnormal=True)
    with connect(seoul.url, autocommit=True) as connection:
        incidents.open(connection, key=incidents.failing(FINRA.name), severity="error", text="x", stream=FINRA.name)
    for stream in (FINRA, KRX):
        seoul.sql("select collect.serve(%s, false, 'sold', 'kim')", stream.name)
    for _ in range(2):
        look(seoul)
        assert still(seoul) == ["quarantine/finra.short_volume/parse"]


# --- the window's own deadline


def tell(seoul: Seoul, instant: datetime) -> bool:
    return lookout.tell_past_due(seoul.url, KRX, instant)


def test_a_missed_deadline_and_the_lookout_tell_one_thing(seoul: Seoul) -> None:
    assert tell(seoul, kst(DAY, 8, 10))
    look(seoul)
    assert tell(seoul, kst(DAY, 8, 10))
    assert list(seoul.alerts()) == ["past-due/krx.prices/2026-09-15T23:10:00Z"]


def test_the_deadline_of_a_window_that_is_over_is_dropped(seoul: Seoul) -> None:
    seoul.work(KRX, kst(DAY, 8, 10), "FAILED")
    assert not tell(seoul, kst(DAY, 8, 10))
    assert seoul.alerts() == {}


@pytest.mark.parametrize("instant", [kst(date(2026, 9, 17), 8, 10), kst(date(2026, 8, 3), 8, 10)])
def test_the_deadline_of_a_window_to_come_or_before_there_was_a_stream_is_dropped(
    seoul: Seoul, instant: datetime
) -> None:
    assert not tell(seoul, instant)


# --- checkpoints


def test_a_checkpoint_two_sessions_behind_is_allowed_and_three_are_told(seoul: Seoul) -> None:
    seoul.work(KRX, kst(DAY, 8, 10))
    held(seoul, FINRA.name, date(2026, 9, 11))
    assert look(seoul) == []
    held(seoul, FINRA.name, date(2026, 9, 10))
    (text,) = look(seoul)
    assert (
        "finra.short_volume lags: it is held or explained up to 2026-09-10 only, 3 sessions behind 2026-09-15" in text
    )
    held(seoul, FINRA.name, date(2026, 9, 15))
    assert look(seoul) == ["finra.short_volume is held or explained up to 2026-09-15."]
    assert list(seoul.alerts().values())[-1].startswith("RECOVERED: finra.short_volume is held or explained")


def test_a_weekend_and_a_holiday_are_no_lag(seoul: Seoul) -> None:
    """On the Monday after, Friday is the last session; Labour Day and the weekend before it count for nothing."""
    held(seoul, FINRA.name, FRIDAY)
    seoul.at(kst(MONDAY, 9, 10))
    assert [key for key in still(seoul) if key.startswith("lag/")] == []
    look(seoul)
    assert [key for key in still(seoul) if key == "lag/finra.short_volume"] == []


def test_a_stream_that_never_worked_lags_from_its_activation_on(seoul: Seoul) -> None:
    seoul.sql("delete from collect.checkpoints where stream = %s", FINRA.name)
    seoul.work(KRX, kst(DAY, 8, 10))
    (text,) = look(seoul)
    assert "held or explained of nothing yet" in text


# --- answers


def ask(seoul: Seoul, good: int, bad: int, stream: str = FINRA.name, first: int = 0, retried: bool = False) -> None:
    """Fetches of just now: so many answered, so many not; `retried` has every bad one answered at the second try."""
    for number in range(good + bad):
        tries = ["error", "data"] if retried and number >= good else ["error" if number >= good else "data"]
        for answer in tries:
            seoul.sql(
                "insert into collect.fetches (stream, cycle_id, attempt, request_key, unit, sent_at, received_at,"
                " answer_class, sha256, error)"
                " values (%s, 1, 1, %s, 'u', collect.clock(), collect.clock(), %s, %s, %s)",
                stream,
                f"key {first + number}",
                answer,
                b"x" * 32,
                None if answer == "data" else "HTTP 503 instead of data",
            )


@pytest.mark.parametrize(
    ("good", "bad", "severity"),
    [(19, 1, None), (18, 2, "warning"), (16, 4, "warning"), (15, 5, "error"), (5, 14, None)],
)
def test_raw_success_is_judged_by_the_hour_from_twenty_answers_on(
    seoul: Seoul, good: int, bad: int, severity: str | None
) -> None:
    seoul.work(KRX, kst(DAY, 8, 10))
    ask(seoul, good, bad)
    look(seoul)
    found = seoul.sql("select severity from ops.incidents where incident_key = 'raw/finra'")
    assert [row["severity"] for row in found] == ([severity] if severity else [])


def test_what_a_retry_repaired_is_no_alert(seoul: Seoul) -> None:
    seoul.work(KRX, kst(DAY, 8, 10))
    ask(seoul, 10, 10, retried=True)
    assert look(seoul) == []


def test_raw_success_recovers_with_the_hour(seoul: Seoul) -> None:
    seoul.work(KRX, kst(DAY, 8, 10))
    ask(seoul, 10, 10)
    look(seoul)
    seoul.advance(minutes=61)
    ask(seoul, 1, 0, first=100)
    look(seoul)
    assert "raw/finra" not in still(seoul)


# --- quarantine, keys given up, blocks, runs


def aside(seoul: Seoul, rule: str = "parse", scope: str = "unit") -> None:
    seoul.sql(
        "insert into collect.quarantine"
        " (stream, unit, fetch_id, cycle_id, scope, rule, reason, parser_version, created_at)"
        " values (%s, 'CNMS/1', 1, 7, %s, %s, 'it is cut', 1, collect.clock())",
        FINRA.name,
        scope,
        rule,
    )
    with connect(seoul.url, autocommit=True) as connection:
        incidents.tell_put_aside(connection, FINRA.name, 7, ["doubted"])


def test_quarantine_is_told_by_rule_and_is_over_when_none_of_it_is_open(seoul: Seoul) -> None:
    seoul.work(KRX, kst(DAY, 8, 10))
    aside(seoul)
    aside(seoul, "volume is not negative", "row")
    assert still(seoul) == [
        "quarantine/finra.short_volume/parse",
        "quarantine/finra.short_volume/volume is not negative",
    ]
    look(seoul)
    assert len(still(seoul)) == 2
    seoul.sql(
        "update collect.quarantine set state = 'dropped', resolved_by = 'kim', resolved_why = 'x' where rule = 'parse'"
    )
    look(seoul)
    assert still(seoul) == ["quarantine/finra.short_volume/volume is not negative"]
    assert "has no open entry of parse" in list(seoul.alerts().values())[-1]


def test_a_doubted_listing_is_told_by_who_doubts_it_alone(seoul: Seoul) -> None:
    aside(seoul, "doubted")
    assert still(seoul) == []


def test_keys_given_up_are_over_when_none_is_left(seoul: Seoul) -> None:
    seoul.work(KRX, kst(DAY, 8, 10))
    seoul.sql(
        "insert into collect.pending (stream, key, why, given_up_at, created_at, updated_at)"
        " values (%s, 'k', 'failed', collect.clock(), collect.clock(), collect.clock())",
        FINRA.name,
    )
    with connect(seoul.url, autocommit=True) as connection:
        incidents.open(connection, key=incidents.given_up(FINRA.name), severity="error", text="k", stream=FINRA.name)
    look(seoul)
    assert still(seoul) == ["given-up/finra.short_volume"]
    seoul.sql("delete from collect.pending")
    look(seoul)
    assert still(seoul) == []


def test_a_block_is_over_when_the_upstream_answers_after_it(seoul: Seoul) -> None:
    from include.engine import hosts

    seoul.work(KRX, kst(DAY, 8, 10))
    with connect(seoul.url, autocommit=True) as connection:
        hosts.block(connection, "finra", "a page for people")
    look(seoul)
    assert still(seoul) == ["block/finra"]
    seoul.advance(minutes=20)
    look(seoul)
    assert still(seoul) == ["block/finra"], "that the time has passed says nothing"
    ask(seoul, 1, 0)
    look(seoul)
    assert still(seoul) == []


def test_who_was_late_at_nine_is_told_when_the_last_of_them_is_complete(database: str) -> None:
    with opened(database, kst(DAY, 0, 1), (KRX, FINRA)) as here:
        here.dispatch()
        held(here, FINRA.name, date(2026, 9, 15))
        held(here, KRX.name, DAY)
        here.at(kst(DAY, 9))
        here.capture()
        assert "late/2026-09-16" in still(here)
        assert "resume what is frozen, unpause what is paused" in here.alerts()["snapshot/2026-09-16/CAPTURED"]
        here.at(kst(DAY, 9, 1))
        here.work(KRX, kst(DAY, 8, 10))
        look(here)
        assert "late/2026-09-16" in still(here)
        here.work(FINRA, kst(DAY, 7, 35))
        look(here)
        assert "late/2026-09-16" not in still(here)
        assert "every stream that was late at 09:00 of 2026-09-16 is complete now" in str(here.alerts())


def test_a_missed_day_is_over_when_a_snapshot_is_taken_again(seoul: Seoul) -> None:
    seoul.sql("delete from ops.alerts")
    tomorrow = DAY + timedelta(days=1)
    seoul.at(kst(tomorrow, 9, 5))
    from include.engine import snapshot

    snapshot.mark_missed(seoul.url)
    assert "missed/snapshots" in still(seoul)
    assert "Look with `./run status`" in seoul.alerts()[f"snapshot/{tomorrow}/MISSED"]
    third = DAY + timedelta(days=2)
    seoul.at(kst(third, 0, 1))
    seoul.dispatch()
    seoul.at(kst(third, 9))
    assert seoul.capture(third) == "CAPTURED"
    assert "missed/snapshots" not in still(seoul)
    assert "RECOVERED: the snapshot of 2026-09-18 was taken" in str(seoul.alerts())


# --- the day


def test_a_day_that_nobody_prepared_is_told_at_half_past_midnight_and_while_there_is_time(seoul: Seoul) -> None:
    tomorrow = DAY + timedelta(days=1)
    seoul.at(kst(tomorrow, 0, 29))
    look(seoul)
    assert f"undispatched/{tomorrow}" not in still(seoul)
    seoul.at(kst(tomorrow, 0, 31))
    look(seoul)
    assert lookout.tell_undispatched(seoul.url)
    assert f"undispatched/{tomorrow}" in still(seoul)
    assert [key for key in seoul.alerts() if "dispatch" in key] == [f"deadline/dispatch/{tomorrow}"]
    seoul.dispatch()
    look(seoul)
    assert f"undispatched/{tomorrow}" not in still(seoul)
    assert not lookout.tell_undispatched(seoul.url)


def test_a_day_that_nobody_prepared_names_the_paused_dag_that_should_have(seoul: Seoul) -> None:
    tomorrow = DAY + timedelta(days=1)
    seoul.at(kst(tomorrow, 0, 31))
    lookout.note_paused(seoul.url, {"dispatch": True})
    look(seoul)
    told = seoul.alerts()[f"deadline/dispatch/{tomorrow}"]
    assert "The DAG dispatch is PAUSED in Airflow since 2026-09-17 00:31 KST: unpause it." in told


@pytest.mark.parametrize("how", ["past nine", "off"])
def test_a_day_that_nobody_prepared_is_told_as_such_no_more_once_it_can_no_longer_be(seoul: Seoul, how: str) -> None:
    """Also by a lookout that comes back days later only."""
    tomorrow = DAY + timedelta(days=1)
    seoul.at(kst(tomorrow, 0, 31))
    look(seoul)
    if how == "off":
        seoul.sql("select * from collect.control('dispatch', '*', 'off', 'moving house', 'kim')")
    else:
        seoul.at(kst(tomorrow + timedelta(days=2), 0, 5))
    look(seoul)
    assert f"undispatched/{tomorrow}" not in still(seoul)
    words = {"past nine": "that date has no verdict", "off": "dispatch is off since"}[how]
    (told,) = [text for key, text in seoul.alerts().items() if key.startswith("undispatched/")]
    assert told.startswith("CLOSED, not mended: "), "there is no verdict, so nothing has recovered"
    assert words in told
    assert "RECOVERED" not in str(seoul.alerts())


def test_a_first_deployment_in_the_night_has_half_an_hour_to_dispatch(database: str) -> None:
    here = Seoul(database, (KRX,))
    here.at(kst(DAY, 3))
    here.activated(kst(DAY, 3))
    here.at(kst(DAY, 3, 5))
    look(here)
    assert still(here) == []
    here.at(kst(DAY, 3, 31))
    look(here)
    assert still(here) == ["undispatched/2026-09-16"]
    here.close()


# --- emptiness


def test_a_complete_window_without_rows_where_that_is_never_right_is_told_until_rows_come(seoul: Seoul) -> None:
    seoul.work(KRX, kst(DAY, 8, 10), abnormal=True)
    (text,) = look(seoul)
    assert "complete and without any row, which is never right there" in text
    assert still(seoul) == ["empty/krx.prices"]
    tomorrow = DAY + timedelta(days=1)
    seoul.at(kst(tomorrow, 8, 20))
    seoul.work(KRX, kst(tomorrow, 8, 10), abnormal=False)
    look(seoul)
    assert "empty/krx.prices" not in still(seoul)
