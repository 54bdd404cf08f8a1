"""The alert outbox and Slack: in order, at least once, by one sender, with silences; over a stand-in for the real."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta

import psycopg
import pytest

from include.engine import alerts, silences
from include.engine.db import connect, transaction
from include.ops import slack
from include.outputs import lease as leases
from tests.engine.seoul import DAY, Seoul, kst
from tests.fixtures_sandbox import RunningSandbox, Start

Point = Callable[[str], None]


@pytest.fixture
def seoul(database: str) -> Iterator[Seoul]:
    here = Seoul(database)
    here.at(kst(DAY, 9))
    yield here
    here.close()


@pytest.fixture
def upstream(sandbox: Start) -> RunningSandbox:
    return sandbox()


@pytest.fixture
def point(monkeypatch: pytest.MonkeyPatch, upstream: RunningSandbox) -> Point:
    """Gives a function that points the connection somewhere; it points to the stand-in from the start."""

    def to(address: str) -> None:
        monkeypatch.setenv("AIRFLOW_CONN_SLACK", json.dumps({"conn_type": "slackwebhook", "password": address}))

    to(upstream.slack_url)
    return to


def put(url: str, *keys: str) -> None:
    with transaction(url) as connection:
        for key in keys:
            alerts.put(connection, key=key, severity="warning", text=f"about {key}")


def heard(upstream: RunningSandbox) -> list[str]:
    """The keys of the messages that Slack took, in order."""
    return [message["text"].rpartition("\n")[2].strip("`") for message in upstream.control("GET", "slack")["messages"]]


def test_an_upstreams_words_call_nobody_and_make_no_link() -> None:
    row = {"severity": "error", "text": "<!channel> <b>R&D</b>", "age_seconds": 0, "alert_key": "block/x"}
    assert slack.text_of(row) == "[error] &lt;!channel&gt; &lt;b&gt;R&amp;D&lt;/b&gt;\n`block/x`"


def test_messages_come_in_order_and_carry_their_key(seoul: Seoul, upstream: RunningSandbox, point: Point) -> None:
    put(seoul.url, "a/1", "a/2", "a/3")
    assert slack.drain(seoul.url, "me") == slack.Drained(3)
    assert heard(upstream) == ["a/1", "a/2", "a/3"]
    assert upstream.control("GET", "slack")["messages"][0]["text"] == "[warning] about a/1\n`a/1`"
    assert slack.drain(seoul.url, "me") == slack.Drained(0)


def test_slack_dead_for_an_hour_and_back_has_every_message_once_in_order_and_marked_as_delayed(
    seoul: Seoul, upstream: RunningSandbox, point: Point
) -> None:
    point("http://127.0.0.1:1/services/T0/B0/nobody-listens-here")
    keys = [f"hour/{minute:02}" for minute in range(0, 60, 5)]
    for key in keys:
        put(seoul.url, key)
        for _ in range(3):
            done = slack.drain(seoul.url, "me")
            assert done.sent == 0
            seoul.advance(seconds=100)
    waiting = seoul.one("select attempts, last_error from ops.alerts where alert_key = 'hour/00'")
    assert 12 <= waiting["attempts"] <= 25, "the tries get rarer, up to five minutes"
    assert "nobody-listens-here" not in waiting["last_error"]
    point(upstream.slack_url)
    seoul.advance(minutes=5)
    assert slack.drain(seoul.url, "me") == slack.Drained(len(keys))
    assert heard(upstream) == keys
    first = upstream.control("GET", "slack")["messages"][0]["text"]
    assert "(delayed: known since 2026-09-16 09:00 KST)" in first
    assert seoul.one("select count(*) as n from ops.alerts where sent_at is null")["n"] == 0


def test_a_message_that_slack_refuses_keeps_those_behind_it(
    seoul: Seoul, upstream: RunningSandbox, point: Point
) -> None:
    put(seoul.url, "a/1", "a/2")
    upstream.fault(match={"kind": "webhook"}, status=500, body="no")
    assert slack.drain(seoul.url, "me").error is not None
    assert heard(upstream) == []
    assert slack.drain(seoul.url, "me").sent == 0, "its time has not come yet"
    seoul.advance(seconds=11)
    assert slack.drain(seoul.url, "me") == slack.Drained(2)
    assert heard(upstream) == ["a/1", "a/2"]


def test_slacks_own_rate_limit_is_waited_for(seoul: Seoul, upstream: RunningSandbox, point: Point) -> None:
    put(seoul.url, "a/1")
    upstream.fault(match={"kind": "webhook"}, status=429, headers={"Retry-After": "1"}, body="slow down")
    assert slack.drain(seoul.url, "me") == slack.Drained(1)
    assert heard(upstream) == ["a/1"]
    assert seoul.one("select attempts from ops.alerts")["attempts"] == 1


def test_one_sender_at_a_time(seoul: Seoul, upstream: RunningSandbox, point: Point) -> None:
    put(seoul.url, *(f"a/{n}" for n in range(8)))
    done: list[slack.Drained] = []
    senders = [threading.Thread(target=lambda: done.append(slack.drain(seoul.url, "me"))) for _ in range(3)]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join()
    slack.drain(seoul.url, "me")
    assert heard(upstream) == [f"a/{n}" for n in range(8)]
    held = leases.claim(seoul.url, slack.LEASE, "somebody else")
    assert isinstance(held, leases.PublishLease)
    put(seoul.url, "a/8")
    assert slack.drain(seoul.url, "me") == slack.Drained(0)


def test_a_sender_whose_connection_is_cut_leaves_the_outbox_to_the_next_at_once(
    seoul: Seoul, upstream: RunningSandbox, point: Point, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(seoul.url, "a", "b")
    with monkeypatch.context() as patch:
        patch.setattr(slack, "_send", lambda row, connection_id: (_ for _ in ()).throw(psycopg.OperationalError("cut")))
        with pytest.raises(psycopg.OperationalError):
            slack.drain(seoul.url, "the first")
    assert slack.drain(seoul.url, "the second") == slack.Drained(2)


def test_who_lost_the_lease_while_slack_kept_him_waiting_goes_no_further(
    seoul: Seoul, upstream: RunningSandbox, point: Point, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(seoul.url, "a/1", "a/2")

    def slow(row: object, connection_id: str) -> None:
        seoul.advance(minutes=6)
        assert isinstance(leases.claim(seoul.url, slack.LEASE, "another"), leases.PublishLease)

    monkeypatch.setattr(slack, "_send", slow)
    done = slack.drain(seoul.url, "me")
    assert done.sent == 0
    assert "no longer holds the lease" in (done.error or "")
    assert seoul.one("select count(*) as n from ops.alerts where sent_at is null")["n"] == 2


def test_a_message_that_was_taken_and_not_noted_comes_again_rather_than_never(
    seoul: Seoul, upstream: RunningSandbox, point: Point, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(seoul.url, "a/1")
    send = slack._send

    def killed(row: dict[str, object], connection_id: str) -> str | None:
        send(row, connection_id)
        raise KeyboardInterrupt

    monkeypatch.setattr(slack, "_send", killed)
    with pytest.raises(KeyboardInterrupt):
        slack.drain(seoul.url, "me")
    monkeypatch.setattr(slack, "_send", send)
    seoul.advance(minutes=6)
    assert slack.drain(seoul.url, "me") == slack.Drained(1)
    assert heard(upstream) == ["a/1", "a/1"]


def test_what_a_silence_covers_is_kept_and_marked_and_not_sent(
    seoul: Seoul, upstream: RunningSandbox, point: Point
) -> None:
    made = silences.make(seoul.url, "past-due/krx.*", kst(DAY, 12), "kim", "KRX moves house")
    put(seoul.url, "past-due/krx.prices/x", "past-due/finra.short_volume/x")
    slack.drain(seoul.url, "me")
    assert heard(upstream) == ["past-due/finra.short_volume/x"]
    row = seoul.one("select * from ops.alerts where alert_key = 'past-due/krx.prices/x'")
    assert (row["silence_id"], row["sent_at"]) == (made["silence_id"], None)
    (listed,) = silences.listed(seoul.url)
    assert (listed["holds"], listed["kept_back"], listed["reason"]) == (True, 1, "KRX moves house")


def test_a_silence_ends_and_what_comes_after_it_is_sent(seoul: Seoul, upstream: RunningSandbox, point: Point) -> None:
    silences.make(seoul.url, "*", kst(DAY, 9, 30), "kim", "maintenance")
    put(seoul.url, "a/during")
    seoul.at(kst(DAY, 9, 31))
    put(seoul.url, "a/after")
    slack.drain(seoul.url, "me")
    assert heard(upstream) == ["a/after"], "also where Slack was asked only after its end"
    assert silences.listed(seoul.url) == []
    assert len(silences.listed(seoul.url, everything=True)) == 1


def test_a_silence_that_is_lifted_ends_at_once(seoul: Seoul, upstream: RunningSandbox, point: Point) -> None:
    made = silences.make(seoul.url, "a/*", kst(DAY, 12), "kim", "why")
    silences.lift(seoul.url, made["silence_id"], "lee")
    seoul.advance(seconds=1)
    put(seoul.url, "a/1")
    slack.drain(seoul.url, "me")
    assert heard(upstream) == ["a/1"]
    with pytest.raises(silences.SilenceRefused, match="No silence"):
        silences.lift(seoul.url, made["silence_id"], "lee")


@pytest.mark.parametrize("pattern", ["a_1", "a%", "A/1"])
def test_only_the_asterisk_stands_for_anything(
    seoul: Seoul, upstream: RunningSandbox, point: Point, pattern: str
) -> None:
    silences.make(seoul.url, pattern, kst(DAY, 12), "kim", "why")
    put(seoul.url, "a/1")
    slack.drain(seoul.url, "me")
    assert heard(upstream) == ["a/1"]


def test_a_silence_needs_an_end_a_reason_and_a_name(seoul: Seoul) -> None:
    for pattern, ends, who, why in (
        ("", kst(DAY, 12), "kim", "why"),
        ("*", kst(DAY, 12), " ", "why"),
        ("*", kst(DAY, 12), "kim", ""),
        ("*", kst(DAY, 8), "kim", "why"),
        ("*", kst(DAY, 12).replace(tzinfo=None), "kim", "why"),
    ):
        with pytest.raises(silences.SilenceRefused):
            silences.make(seoul.url, pattern, ends, who, why)
    assert silences.listed(seoul.url, everything=True) == []


def test_the_secret_of_the_webhook_is_in_no_error(seoul: Seoul, point: Point) -> None:
    point("http://127.0.0.1:1/services/T0/B0/marker-secret")
    put(seoul.url, "a/1")
    done = slack.drain(seoul.url, "me")
    assert "marker-secret" not in (done.error or "")
    with connect(seoul.url, autocommit=True) as connection:
        row = connection.execute("select last_error from ops.alerts").fetchone()
    assert row is not None
    assert "marker-secret" not in row["last_error"]


def test_delivered_messages_are_cleaned_by_age_and_nothing_that_waits(
    seoul: Seoul, upstream: RunningSandbox, point: Point
) -> None:
    from include.engine import housekeeping

    put(seoul.url, "a/old")
    slack.drain(seoul.url, "me")
    seoul.advance(days=31)
    put(seoul.url, "a/waits")
    seoul.sql("update ops.alerts set created_at = created_at - interval '90 days' where alert_key = 'a/waits'")
    assert housekeeping.clean(seoul.url, timedelta(days=30), 10).alerts == 1
    assert [row["alert_key"] for row in seoul.sql("select alert_key from ops.alerts")] == ["a/waits"]
    assert housekeeping.clean(seoul.url, None, 10).alerts == 0
