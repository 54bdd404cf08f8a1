"""The alert outbox and Slack: in order, at least once, by one sender, with silences; over a stand-in for the real."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta

import psycopg
import pytest

from include.engine import alerts, incidents, lookout, silences
from include.engine.db import connect, transaction
from include.ops import slack
from include.outputs import lease as leases
from tests.engine.desk import beside, wait_until_blocked
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


def test_a_message_that_slack_has_no_time_for_keeps_those_behind_it(
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


# --- what Slack refuses for good


def waiting(seoul: Seoul) -> list[str]:
    rows = seoul.sql(
        "select alert_key from ops.alerts where sent_at is null and refused_at is null and silenced_at is null"
        " order by alert_id"
    )
    return [row["alert_key"] for row in rows]


def refuse(upstream: RunningSandbox, word: str, times: int = 1, status: int = 400) -> None:
    upstream.fault(match={"kind": "webhook"}, status=status, body=word, n=times)


@pytest.mark.parametrize(("word", "status"), [("invalid_payload", 400), ("channel_not_found", 404)])
def test_a_message_that_slack_refuses_for_good_is_put_aside_with_the_reason_and_the_rest_go_on(
    seoul: Seoul, upstream: RunningSandbox, point: Point, word: str, status: int
) -> None:
    put(seoul.url, "a/1", "a/2", "a/3")
    refuse(upstream, word, status=status)
    assert slack.drain(seoul.url, "me").error is None
    assert heard(upstream)[:2] == ["a/2", "a/3"]
    (row,) = alerts.put_aside(seoul.url)
    assert (row["alert_key"], row["refused_why"], row["attempts"]) == ("a/1", f"{word} (HTTP {status})", 1)
    (found,) = incidents.listed(seoul.url)
    assert (found["incident_key"], found["severity"]) == ("refused/slack", "warning")
    assert "(a/1) for good" in found["text"]
    assert heard(upstream)[2] == f"refused/slack/{found['incident_id']}", "and that is told as well"
    lookout.look(seoul.url, ())
    assert incidents.listed(seoul.url), "it lasts until somebody decides"


@pytest.mark.parametrize("how", ["try again", "drop"])
def test_somebody_decides_on_what_was_put_aside_and_the_incident_is_over(
    seoul: Seoul, upstream: RunningSandbox, point: Point, how: str
) -> None:
    put(seoul.url, "a/1", "a/2")
    refuse(upstream, "invalid_payload")
    slack.drain(seoul.url, "me")
    (row,) = alerts.put_aside(seoul.url)
    with pytest.raises(alerts.AlertRefused, match="who decides and why"):
        alerts.drop(seoul.url, row["alert_id"], "kim", " ")
    decide = alerts.drop if how == "drop" else alerts.try_again
    decided = decide(seoul.url, row["alert_id"], "kim", "a test")
    assert (decided["settled_by"], decided["settled_why"]) == ("kim", "a test")
    with pytest.raises(alerts.AlertRefused, match="Nothing was changed"):
        decide(seoul.url, row["alert_id"], "kim", "twice")
    lookout.look(seoul.url, ())
    assert incidents.listed(seoul.url) == []
    slack.drain(seoul.url, "me")
    assert ("a/1" in heard(upstream)) == (how != "drop")
    assert waiting(seoul) == []


def test_a_webhook_that_is_gone_loses_nothing_and_puts_nothing_aside(
    seoul: Seoul, upstream: RunningSandbox, point: Point
) -> None:
    """Every message is refused for good, so that none of them is at fault: all wait, in order, until it is mended."""
    put(seoul.url, "a/1", "a/2", "a/3")
    refuse(upstream, "no_service", times=8, status=404)
    for _ in range(4):
        done = slack.drain(seoul.url, "me")
        assert (done.sent, done.error) == (0, "no_service (HTTP 404)")
        seoul.advance(minutes=5)
    assert alerts.put_aside(seoul.url) == []
    (found,) = incidents.listed(seoul.url)
    assert found["incident_key"] == "outbox/slack"
    assert "Slack takes nothing that is sent with the connection slack: no_service" in found["text"]
    assert slack.drain(seoul.url, "me").error is None
    number = found["incident_id"]
    assert heard(upstream) == ["a/1", "a/2", "a/3", f"outbox/slack/{number}", f"outbox/slack/{number}/recovered"]
    assert incidents.listed(seoul.url) == []


def test_a_single_message_with_a_refusal_of_its_own_is_told_from_a_webhook_that_is_gone_by_the_next_one(
    seoul: Seoul, upstream: RunningSandbox, point: Point
) -> None:
    put(seoul.url, "a/1")
    refuse(upstream, "user_not_found", times=2)
    assert slack.drain(seoul.url, "me").sent == 0, "it may be the webhook"
    seoul.advance(minutes=1)
    slack.drain(seoul.url, "me")
    assert [row["alert_key"] for row in alerts.put_aside(seoul.url)] == ["a/1"]
    assert [key.rpartition("/")[0] for key in heard(upstream)][:2] == ["outbox/slack", "refused/slack"]
    assert waiting(seoul) == []


def test_two_refused_for_different_reasons_hold_up_nobody(seoul: Seoul, upstream: RunningSandbox, point: Point) -> None:
    """What is wrong with the second one says nothing of the first."""
    put(seoul.url, "a/1", "a/2", "a/3")
    for word in ("user_not_found", "invalid_payload", "user_not_found"):
        refuse(upstream, word)
    assert slack.drain(seoul.url, "me").error is None
    assert [row["alert_key"] for row in alerts.put_aside(seoul.url)] == ["a/1", "a/2"]
    assert heard(upstream)[0] == "a/3"


# --- the order of what is committed late


def test_a_message_that_was_committed_late_is_sent_late_and_never_lost(
    seoul: Seoul, upstream: RunningSandbox, point: Point
) -> None:
    with connect(seoul.url) as late:
        alerts.put(late, key="a/early-number", severity="warning", text="x")
        put(seoul.url, "a/late-number")
        assert slack.drain(seoul.url, "me") == slack.Drained(1)
        late.commit()
    assert slack.drain(seoul.url, "me") == slack.Drained(1)
    assert heard(upstream) == ["a/late-number", "a/early-number"]
    numbers = [row["alert_key"] for row in seoul.sql("select alert_key from ops.alerts order by alert_id")]
    assert numbers == ["a/early-number", "a/late-number"]


def test_that_something_is_over_is_never_sent_before_that_it_began(
    seoul: Seoul, upstream: RunningSandbox, point: Point
) -> None:
    """Whoever ends an incident that is not committed finds none; whoever waits for its row comes after it."""
    with connect(seoul.url) as opening:
        incidents.open(opening, key="kind/x", severity="error", text="it began")
        with connect(seoul.url, autocommit=True) as other:
            assert incidents.close(other, ["kind/x"], "over") == 0
        opening.commit()
    with connect(seoul.url) as worse:
        incidents.open(worse, key="kind/x", severity="critical", text="it got worse")
        ended = beside(lambda: close(seoul.url))
        wait_until_blocked(seoul.url)
        slack.drain(seoul.url, "me")
        worse.commit()
    assert ended.result() == 1
    slack.drain(seoul.url, "me")
    (row,) = seoul.sql("select incident_id from ops.incidents")
    key = f"kind/x/{row['incident_id']}"
    assert heard(upstream) == [key, f"{key}/2", f"{key}/recovered"]


def close(url: str) -> int:
    with connect(url, autocommit=True) as connection:
        return incidents.close(connection, ["kind/x"], "over")


def test_that_something_began_is_not_sent_again_once_it_was_told_as_over(
    seoul: Seoul, upstream: RunningSandbox, point: Point
) -> None:
    with connect(seoul.url, autocommit=True) as connection:
        incidents.open(connection, key="kind/x", severity="error", text="it began")
    close(seoul.url)
    refuse(upstream, "invalid_payload")
    slack.drain(seoul.url, "me")
    assert heard(upstream)[0].endswith("/recovered")
    (row,) = alerts.put_aside(seoul.url)
    with pytest.raises(alerts.AlertRefused, match="what came of it was sent since"):
        alerts.try_again(seoul.url, row["alert_id"], "kim", "again")
    alerts.drop(seoul.url, row["alert_id"], "kim", "it is over")


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

    def slow(row: object, connection_id: str) -> slack.Answer:
        seoul.advance(minutes=6)
        assert isinstance(leases.claim(seoul.url, slack.LEASE, "another"), leases.PublishLease)
        return slack.Answer(slack.Fate.TAKEN)

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

    def killed(row: dict[str, object], connection_id: str) -> slack.Answer:
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
    with pytest.raises(silences.SilenceRefused, match="Say who ends it and why"):
        silences.lift(seoul.url, made["silence_id"], "lee", "")
    lifted = silences.lift(seoul.url, made["silence_id"], "lee", "it is over")
    assert (lifted["lifted_by"], lifted["lifted_why"]) == ("lee", "it is over")
    seoul.advance(seconds=1)
    put(seoul.url, "a/1")
    slack.drain(seoul.url, "me")
    assert heard(upstream) == ["a/1"]
    with pytest.raises(silences.SilenceRefused, match="No silence"):
        silences.lift(seoul.url, made["silence_id"], "lee", "twice")


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
        ("*", kst(DAY, 8) + timedelta(days=367), "kim", "why"),
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
