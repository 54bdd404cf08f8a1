"""What an upstream can do to us: every fault ends as the tables say, with each request counted."""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from include.contract import AnswerClass, Credentials, CycleStatus, DefiniteRefusal, HostGroup, Mode, Outcome
from include.engine import hosts, windows
from include.engine.db import connect, query
from tests.engine.cdn import DENIED, PAGE, Trouble, text
from tests.engine.desk import SMALL, STREAM, TUESDAY, WEDNESDAY, Desk, beside, ny

PENDING, SUCCESS, FAILED = CycleStatus.PENDING, CycleStatus.SUCCESS, CycleStatus.FAILED
CNMS = "CNMSshvol20260915.txt"


@pytest.fixture
def small(desk: Desk) -> Desk:
    """One file a day."""
    desk.stream = SMALL
    desk.cdn.publish(TUESDAY)
    return desk


def fetches(desk: Desk) -> list[Any]:
    return desk.sql("select * from collect.fetches order by fetch_id")


# --- faults that pass


@pytest.mark.parametrize(
    "trouble",
    [
        Trouble(500),
        Trouble(503),
        Trouble(429),
        Trouble(502, body=PAGE, headers={"Content-Type": "text/html"}),
        Trouble(reset=True),
        Trouble(cut=True),
    ],
    ids=["500", "503", "429", "502 with a page", "reset", "cut"],
)
def test_a_fault_that_passes_is_overcome_within_the_slice(small: Desk, trouble: Trouble) -> None:
    small.cdn.trouble("CNMS", TUESDAY, trouble, trouble)
    verdict = small.poll()
    assert (verdict.status, verdict.outcome) == (SUCCESS, Outcome.SUCCESS)
    assert small.cdn.asked() == [CNMS] * 3
    rows = fetches(small)
    assert [(row["answer_class"], row["tries"]) for row in rows] == [("error", 1), ("error", 2), ("data", 3)]
    assert all(row["error"] for row in rows[:2])
    assert small.values() == {"AAPL": "10.5", "ABRpD": "1", "NA": "3"}
    waits = [sum(small.naps[:2]), sum(small.naps[2:])]
    assert waits == [2.0, 4.0]


@pytest.mark.parametrize(
    "trouble", [Trouble(500), Trouble(429), Trouble(reset=True), Trouble(cut=True)], ids=["500", "429", "reset", "cut"]
)
def test_a_fault_that_stays_ends_the_window_after_four_requests(small: Desk, trouble: Trouble) -> None:
    small.cdn.trouble("CNMS", TUESDAY, *[trouble] * 4)
    verdict = small.poll()
    assert (verdict.status, verdict.outcome) == (FAILED, Outcome.FAILED_RETRIABLE)
    assert small.cdn.asked() == [CNMS] * 4
    row = small.cycle()
    assert (row["failure_kind"], row["failure_reason"]) == ("retriable", "answers failed after the retries")
    assert "CNMS/2026-09-15" in row["failure_cause_summary"]
    assert row["detail_failure_count"] == 1
    assert small.pending()["CNMS/2026-09-15"]["why"] == "failed"
    assert small.checkpoint() is None
    assert small.rows() == []


def test_a_body_that_was_cut_is_never_kept_as_an_answer(small: Desk) -> None:
    small.cdn.trouble("CNMS", TUESDAY, Trouble(cut=True))
    small.poll()
    first = fetches(small)[0]
    assert (first["http_status"], first["sha256"], first["answer_class"]) == (None, None, "error")
    assert small.one("select count(*) as n from collect.raw_objects")["n"] == 1


def test_one_failed_window_is_told_to_nobody_a_second_in_a_row_is(small: Desk) -> None:
    small.cdn.trouble("CNMS", TUESDAY, *[Trouble(500)] * 8)
    assert small.poll().status is FAILED
    assert small.alerts() == []
    small.at(ny(TUESDAY, 18, 46))
    assert small.poll().status is FAILED
    assert len(small.alerts()) == 1
    small.at(ny(TUESDAY, 19, 16))
    assert small.poll().status is SUCCESS
    _, recovered = small.alerts()
    assert recovered.startswith("RECOVERED: finra.short_volume is well again: window 2026-09-16 08:15 KST")


def test_other_files_are_kept_and_applied_where_one_failed(desk: Desk) -> None:
    desk.cdn.publish(TUESDAY)
    desk.cdn.trouble("FNYX", TUESDAY, *[Trouble(500)] * 4)
    assert desk.poll().status is FAILED
    assert len(desk.rows()) == 12
    assert sorted(desk.pending("failed")) == ["FNYX/2026-09-15"]
    desk.at(ny(TUESDAY, 18, 46))
    desk.cdn.forget()
    assert desk.poll().status is SUCCESS
    assert desk.cdn.asked() == ["FNYXshvol20260915.txt"]


# --- Retry-After


def test_the_instant_of_a_reset_is_waited_for_where_there_is_no_retry_after(small: Desk) -> None:
    small.cdn.publish(TUESDAY)
    reset = int(small.now().timestamp()) + 23
    small.cdn.trouble("CNMS", TUESDAY, Trouble(429, {"X-RateLimit-Reset": str(reset)}))
    small.poll()
    assert 20 <= sum(small.naps) <= 24


def test_retry_after_in_seconds_is_waited_for(small: Desk) -> None:
    small.cdn.trouble("CNMS", TUESDAY, Trouble(429, {"Retry-After": "17"}))
    assert small.poll().status is SUCCESS
    assert sum(small.naps) == 17
    assert max(small.naps) <= hosts.LONGEST_NAP


@pytest.mark.parametrize("gives_dates", [True, False])
def test_retry_after_as_an_instant_is_waited_for(small: Desk, gives_dates: bool) -> None:
    """By the upstream's own clock where it tells its time, which may be another than ours; by ours where not."""
    now = small.now() + (timedelta(days=400) if gives_dates else timedelta(0))
    headers = {"Retry-After": format_datetime(now + timedelta(seconds=31), usegmt=True)}
    if gives_dates:
        headers["Date"] = format_datetime(now, usegmt=True)
    small.cdn.gives_dates = gives_dates
    small.cdn.trouble("CNMS", TUESDAY, Trouble(429, headers))
    assert small.poll().status is SUCCESS
    assert 29 <= sum(small.naps) <= 31


@pytest.mark.parametrize("text", ["soon", "-5", "", "1e3", "Tue, 99 Foo 2026"])
def test_a_retry_after_that_says_nothing_leaves_our_own_wait(small: Desk, text: str) -> None:
    small.cdn.trouble("CNMS", TUESDAY, Trouble(503, {"Retry-After": text}))
    assert small.poll().status is SUCCESS
    assert sum(small.naps) == 2


def test_a_long_retry_after_stops_the_host_group_and_the_window_goes_on_after_it(small: Desk) -> None:
    small.cdn.trouble("CNMS", TUESDAY, Trouble(429, {"Retry-After": "600"}))
    verdict = small.poll()
    assert (verdict.status, verdict.words.partition(" ")[0]) == (PENDING, "WAITING")
    assert verdict.next_eligible_at is not None
    assert timedelta(minutes=9) < verdict.next_eligible_at - small.now() <= timedelta(minutes=10)
    assert small.cdn.asked() == [CNMS]
    small.at(verdict.next_eligible_at + timedelta(seconds=1))
    assert small.poll().status is SUCCESS
    assert small.cdn.asked() == [CNMS] * 2
    assert len(small.cycles()) == 1
    assert len(small.alerts()) == 1


def test_a_retry_after_past_the_last_try_ends_the_window(small: Desk) -> None:
    small.cdn.trouble("CNMS", TUESDAY, Trouble(429, {"Retry-After": str(8 * 3600)}))
    verdict = small.poll()
    assert verdict.status is FAILED
    assert small.cycle()["failure_reason"] == "the host is stopped"
    assert list(small.pending()) == ["CNMS/2026-09-15"]


# --- faults that do not pass


@pytest.mark.parametrize(
    ("trouble", "error"),
    [
        (Trouble(401), "HTTP 401"),
        (Trouble(400), "HTTP 400"),
        (Trouble(301, {"Location": "https://elsewhere.invalid/"}), "HTTP 301"),
        (Trouble(200, body=b""), "HTTP 200 with nothing in it"),
        (Trouble(200, {"Content-Type": "application/xml"}, DENIED), "HTTP 200"),
    ],
    ids=["401", "400", "redirect", "empty body", "the 403's XML with 200"],
)
def test_what_is_no_data_is_asked_once_and_never_parsed(small: Desk, trouble: Trouble, error: str) -> None:
    small.cdn.trouble("CNMS", TUESDAY, trouble)
    verdict = small.poll()
    assert verdict.status is FAILED
    assert small.cdn.asked() == [CNMS]
    (row,) = fetches(small)
    assert (row["answer_class"], row["applied_at"]) == ("error", None)
    assert error in row["error"]
    assert small.rows() == []
    assert small.quarantine(None) == []


def test_a_definite_refusal_of_the_stream_ends_the_window_for_good(small: Desk) -> None:
    """Credentials, plan, schema: asking again cannot mend it, so no make-up window does."""

    def classify(answer: Any) -> AnswerClass:
        raise DefiniteRefusal("the key is not accepted; put a valid one into the connection finra")

    small.stream = replace(SMALL, classify=classify)
    verdict = small.poll()
    assert (verdict.status, verdict.outcome) == (FAILED, Outcome.FAILED_TERMINAL)
    assert "the key is not accepted" in verdict.words
    assert small.cycle()["failure_kind"] == "refused"
    assert small.cdn.asked() == [CNMS]
    assert len(small.alerts()) == 1
    small.at(ny(TUESDAY, 23, 0))
    assert small.tick() is None


def test_a_classify_that_breaks_is_an_error_and_the_answer_is_kept(small: Desk) -> None:
    def classify(answer: Any) -> AnswerClass:
        raise KeyError("nobody thought of this")

    small.stream = replace(SMALL, classify=classify)
    assert small.poll().status is FAILED
    (row,) = fetches(small)
    assert "KeyError" in row["error"]
    assert row["sha256"] is not None


# --- block pages


@pytest.mark.parametrize("status", [200, 403])
def test_a_block_page_stops_the_group_voids_reservations_and_alerts(desk: Desk, status: int) -> None:
    desk.cdn.publish(TUESDAY)
    desk.cdn.trouble("FNQC", TUESDAY, Trouble(status, {"Content-Type": "text/html"}, PAGE))
    epoch = desk.one("select epoch from collect.host_groups")["epoch"]
    verdict = desk.poll()
    assert (verdict.status, verdict.outcome) == (FAILED, Outcome.FAILED_TERMINAL)
    assert len(desk.cdn.asked()) == 3
    # What was had before it is kept and applied.
    assert len(desk.rows()) == 6
    group = desk.one("select * from collect.host_groups")
    assert group["epoch"] == epoch + 1
    assert group["blocked_until"] - desk.now() > timedelta(minutes=9)
    assert any("blocks us" in text for text in desk.alerts())
    assert sorted(desk.pending("discovered", "failed")) == [
        f"{name}/2026-09-15" for name in ("FNQC", "FNRA", "FNYX", "FORF")
    ]
    # Nobody else asks meanwhile, whatever it works on.
    desk.cdn.forget()
    desk.cdn.publish(TUESDAY)
    other = desk.request(Mode.BACKFILL, TUESDAY, keys=("FORF",))
    desk.begin(other)
    verdicts = desk.work_off(other)
    assert (verdicts[0].status, verdicts[0].is_held) == (PENDING, True)
    assert "are stopped until" in verdicts[0].words
    assert verdicts[-1].status is SUCCESS
    assert desk.now() > group["blocked_until"]
    assert desk.cdn.asked() == ["FORFshvol20260915.txt"]


def test_a_reservation_made_before_a_block_is_void(desk: Desk) -> None:
    with connect(desk.url, autocommit=True) as connection:
        slot = connection.execute(
            query("hosts.reserve"), {"group": "finra", "patient": False, "keys": [], "leaves": 0}
        ).fetchone()
        assert slot is not None
        hosts.block(connection, "finra", "a test")
        turn = connection.execute(query("hosts.confirm"), {"group": "finra", "epoch": slot["epoch"]}).fetchone()
        assert turn is not None
        assert (turn["sent_at"], turn["blocked_until"] > desk.now()) == (None, True)


def test_a_block_while_a_worker_waits_for_its_turn_stops_it(desk: Desk) -> None:
    desk.stream = replace(STREAM, host_group=HostGroup("finra", timedelta(seconds=30)))
    desk.declare()
    desk.cdn.publish(TUESDAY)
    blocked = False

    def nap(seconds: float) -> None:
        nonlocal blocked
        if not blocked:
            blocked = True
            with connect(desk.url, autocommit=True) as connection:
                hosts.block(connection, "finra", "another worker saw a block page")
        desk.nap(seconds)

    verdict = desk.poll(nap=nap)
    assert verdict.status is PENDING
    assert len(desk.cdn.asked()) == 1


# --- the pace


def test_requests_keep_their_distance_over_all_workers(desk: Desk) -> None:
    """By the database's clock: 30 turns of three workers at once, each an interval after the one before."""
    interval = timedelta(milliseconds=20)
    desk.stream = replace(STREAM, host_group=HostGroup("finra", interval))
    desk.declare()

    def work() -> list[Any]:
        import time

        with connect(desk.url, autocommit=True) as connection:
            return [
                hosts.wait_for_turn(connection, "finra", patient=False, may_go_on=lambda: True, nap=time.sleep)
                for _ in range(10)
            ]

    workers = [beside(work) for _ in range(3)]
    turns = sorted(turn.sent_at for worker in workers for turn in worker.result())
    # A turn may be used late, never early, so the whole cannot be shorter than its intervals.
    assert turns[-1] - turns[0] >= interval * 28


def test_a_backfill_lets_polls_go_first(desk: Desk) -> None:
    with connect(desk.url, autocommit=True) as connection:
        desk.sql("update collect.host_groups set interval = '10 seconds'")
        first = connection.execute(
            query("hosts.reserve"), {"group": "finra", "patient": False, "keys": [], "leaves": 0}
        ).fetchone()
        patient = connection.execute(
            query("hosts.reserve"), {"group": "finra", "patient": True, "keys": [], "leaves": 0}
        ).fetchone()
        poll = connection.execute(
            query("hosts.reserve"), {"group": "finra", "patient": False, "keys": [], "leaves": 0}
        ).fetchone()
    assert first is not None
    assert patient is not None
    assert poll is not None
    assert first["wait"] == timedelta(0)
    # The backfill holds no place in the queue: it asks again, and the poll's turn is the next.
    assert patient["epoch"] is None
    assert poll["epoch"] is not None
    assert timedelta(seconds=9) < poll["wait"] <= timedelta(seconds=10)


def test_a_group_that_nobody_declared_is_named(desk: Desk) -> None:
    with (
        connect(desk.url, autocommit=True) as connection,
        pytest.raises(Exception, match="host group nobodys is not declared"),
    ):
        connection.execute(query("hosts.reserve"), {"group": "nobodys", "patient": False, "keys": [], "leaves": 0})


def test_two_streams_of_one_host_share_its_pace_and_its_blocks(desk: Desk) -> None:
    other = replace(STREAM, name="finra.another")
    windows.declare(desk.url, (desk.stream, other))
    assert desk.one("select count(*) as n from collect.host_groups")["n"] == 1


# --- what must not be seen


SECRET = "marker-secret-8f2c1d"


def test_a_secret_is_in_no_log_address_row_or_object(
    small: Desk, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """It goes to the upstream, which echoes it in a body, a header and an error."""
    caplog.set_level(logging.DEBUG)
    body = text(
        TUESDAY,
        {"AAPL": (1, 0, 2), SECRET[:14]: (1, 0, 2)},
        header=f"Date|Symbol|ShortVolume|ShortExemptVolume|TotalVolume|Market|{SECRET}",
    )
    small.cdn.files[CNMS] = body
    small.cdn.trouble(
        "CNMS",
        TUESDAY,
        Trouble(
            503, {"X-Echo": SECRET, "Link": f"<{small.cdn.url}?apikey={SECRET}>"}, f"key {SECRET} over quota".encode()
        ),
        Trouble(reset=True),
    )
    credentials = Credentials(
        base_url="https://cdn.finra.org",
        sandbox_url=small.cdn.url,
        headers={"X-Key": SECRET},
        params={"apikey": SECRET},
        secrets=(SECRET,),
    )
    small.poll(credentials=credentials)
    small.do(small.request(Mode.BACKFILL, TUESDAY), credentials=credentials)
    assert all(SECRET in one.path and one.headers["x-key"] == SECRET for one in small.cdn.requests)
    assert SECRET not in repr(credentials)
    assert SECRET not in caplog.text
    assert SECRET not in "".join(capfd.readouterr())
    tables = small.sql(
        "select quote_ident(table_schema) || '.' || quote_ident(table_name) as name from information_schema.tables"
        " where table_schema in ('collect', 'market', 'ops', 'publish') and table_type = 'BASE TABLE'"
    )
    for table in tables:
        (found,) = small.sql(f"select count(*) as n from {table['name']} t where t::text like '%' || {SECRET!r} || '%'")
        assert found["n"] == 0, table["name"]
    masked = [row for row in fetches(small) if row["masked"]]
    assert len(masked) >= 2
    for row in fetches(small):
        if row["sha256"] is not None:
            assert SECRET.encode() not in small.raw.body(bytes(row["sha256"])).read()


def test_an_error_never_repeats_the_address_with_its_key(small: Desk) -> None:
    credentials = Credentials(
        base_url="https://cdn.finra.org",
        sandbox_url="http://127.0.0.1:1",
        params={"apikey": SECRET},
        secrets=(SECRET,),
    )
    assert small.poll(credentials=credentials).status is FAILED
    assert all(SECRET not in row["error"] and "http" not in row["error"] for row in fetches(small))


def test_a_missing_key_or_connection_is_no_business_of_the_engine_but_a_redirect_is(small: Desk) -> None:
    """An answer that sends us elsewhere is not followed: nobody else gets our headers."""
    small.cdn.trouble("CNMS", TUESDAY, Trouble(302, {"Location": f"{small.cdn.url}/elsewhere/{CNMS}"}))
    assert small.poll().status is FAILED
    assert len(small.cdn.requests) == 1


def test_every_request_has_a_row_and_every_row_a_request(desk: Desk) -> None:
    desk.cdn.publish(TUESDAY, facilities=("CNMS", "FNSQ", "FNRA"))
    desk.cdn.trouble("FNSQ", TUESDAY, Trouble(503), Trouble(reset=True))
    desk.poll()
    desk.cdn.publish(TUESDAY)
    desk.at(ny(TUESDAY, 19, 1))
    desk.poll()
    desk.cdn.publish(WEDNESDAY)
    desk.at(ny(WEDNESDAY))
    desk.poll()
    rows = fetches(desk)
    asked = Counter(f"{row['request_key'][:4]}shvol{row['session_date']:%Y%m%d}.txt" for row in rows)
    assert asked == Counter(desk.cdn.asked())
    assert {row["answer_class"] for row in rows} == {"data", "empty", "error", "not_yet", "unchanged"}
