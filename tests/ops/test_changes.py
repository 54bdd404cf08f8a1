"""What an operator changes through the API is what the DAG and the command line change, with who and why."""

from __future__ import annotations

from typing import Any

import pytest

from include.engine import alerts
from include.engine.db import connect, query
from include.sources.finra.streams import SHORT_VOLUME_STREAM
from tests.engine.seoul import DART, Seoul, kst
from tests.ops.conftest import Api


def test_a_freeze_is_kept_with_who_why_and_since_when_and_holds_the_stream(api: Api, seoul: Seoul) -> None:
    body = {"action": "freeze", "scope": "stream", "name": DART.name, "why": "the list is wrong"}
    done = api.send("POST", "/controls", body).json()
    assert (done["isNew"], done["state"], done["who"], done["why"]) == (True, "frozen", "admin", body["why"])
    assert done["words"].startswith("DONE")
    again = api.send("POST", "/controls", {**body, "why": "another"}, who="user").json()
    assert (again["isNew"], again["who"], again["since"]) == (False, "admin", done["since"])
    assert seoul.one("select collect.frozen(%s) as why", DART.name)["why"] is not None
    resumed = api.send("POST", "/controls", {**body, "action": "resume"}).json()
    assert resumed["state"] == "running"
    assert seoul.one("select collect.frozen(%s) as why", DART.name)["why"] is None


def test_draining_retiring_and_dispatch_go_the_same_way(api: Api, seoul: Seoul) -> None:
    for action, scope, name, state in (
        ("drain", "source", "dart", "draining"),
        ("retire", "stream", DART.name, "out of service"),
        ("activate", "stream", DART.name, "in service"),
        ("off", "dispatch", "", "off"),
        ("on", "dispatch", "", "on"),
        ("freeze", "all", "", "frozen"),
    ):
        answer = api.send("POST", "/controls", {"action": action, "scope": scope, "name": name, "why": "a test"})
        assert (answer.status_code, answer.json()["state"]) == (200, state)


@pytest.mark.parametrize(
    ("body", "status", "word"),
    [
        ({"action": "freeze", "scope": "stream", "name": "no.such", "why": "x"}, 409, "no.such"),
        ({"action": "freeze", "scope": "dispatch", "why": "x"}, 409, "off and on"),
        ({"action": "retire", "scope": "source", "name": "dart", "why": "x"}, 409, "Only a stream"),
        ({"action": "freeze", "scope": "all"}, 422, "why"),
        ({"action": "freeze", "scope": "all", "why": "   "}, 422, "why"),
        ({"action": "freeze", "scope": "all", "why": "x", "who": "somebody else"}, 422, "who"),
        ({"action": "stop", "scope": "all", "why": "x"}, 422, "action"),
        ({"action": "freeze", "scope": "all", "name": "a\x00b", "why": "x"}, 422, "name"),
        (["freeze"], 422, "body"),
    ],
)
def test_what_cannot_be_changed_is_refused_in_words_and_changes_nothing(
    api: Api, seoul: Seoul, body: Any, status: int, word: str
) -> None:
    answer = api.send("POST", "/controls", body)
    assert answer.status_code == status
    assert word in answer.text
    assert api.read("/controls") == []


def entry(seoul: Seoul, rule: str, stream: str = SHORT_VOLUME_STREAM.name, unit: str = "a-unit") -> int:
    return int(
        seoul.one(
            "insert into collect.quarantine (stream, unit, cycle_id, scope, rule, reason, parser_version, created_at)"
            " values (%s, %s, 1, 'row', %s, 'a reason', 1, collect.clock()) returning quarantine_id",
            stream,
            unit,
            rule,
        )["quarantine_id"]
    )


RULE = SHORT_VOLUME_STREAM.tables[0].rules[0].name


def test_an_entry_is_retried_accepted_or_dropped_with_who_and_why(api: Api, seoul: Seoul) -> None:
    retried, accepted, dropped = (entry(seoul, RULE, unit=f"unit {n}") for n in range(3))
    assert [i["quarantineId"] for page in api.pages("/quarantine", state="open", limit=2) for i in page] == [
        dropped,
        accepted,
        retried,
    ]
    done = api.send("POST", f"/quarantine/{retried}/retry", {"why": "a newer parser"}).json()
    run = api.read(f"/jobRuns/{done['runId']}")
    assert (run["mode"], run["requestedBy"], run["reason"]) == ("replay", "admin", "a newer parser")
    done = api.send("POST", f"/quarantine/{accepted}/accept", {"why": "it is right"}, who="user").json()
    assert (done["entry"]["state"], done["entry"]["resolvedBy"], done["entry"]["resolvedWhy"]) == (
        "accepted",
        "user",
        "it is right",
    )
    assert api.read(f"/jobRuns/{done['runId']}")["progress"]["total"] == 1
    done = api.send("POST", f"/quarantine/{dropped}/drop", {"why": "nobody wants it"}).json()
    assert (done["entry"]["state"], done["runId"]) == ("dropped", None)
    again = api.send("POST", f"/quarantine/{dropped}/drop", {"why": "once more"})
    assert again.status_code == 409
    assert "dropped already" in again.json()["detail"]


def test_what_no_table_could_hold_is_not_accepted(api: Api, seoul: Seoul) -> None:
    broken = entry(seoul, "parse")
    answer = api.send("POST", f"/quarantine/{broken}/accept", {"why": "please"})
    assert answer.status_code == 409
    assert api.read("/quarantine", state="open")["items"][0]["quarantineId"] == broken


def test_an_entry_of_a_stream_that_is_no_more_can_be_dropped_and_not_read_again(api: Api, seoul: Seoul) -> None:
    old = entry(seoul, "parse", stream="gone.stream")
    assert api.send("POST", f"/quarantine/{old}/retry", {"why": "x"}).status_code == 404
    assert api.send("POST", f"/quarantine/{old}/drop", {"why": "x"}).status_code == 200


def test_a_day_is_proposed_and_decided_with_who_and_why(api: Api, seoul: Seoul) -> None:
    wish = {"calendar": "XKRX", "day": "2026-12-31", "why": "the year's last day"}
    proposed = api.send("POST", "/calendarExceptions", wish, who="user").json()
    assert (proposed["state"], proposed["decidedBy"]) == ("proposed", None)
    assert "the year's last day" in proposed["reason"]
    assert "user" in proposed["reason"]
    word = {"state": "closed", "why": "announced"}
    decided = api.send("PUT", "/calendarExceptions/XKRX/2026-12-31", word).json()
    assert (decided["state"], decided["decidedBy"], decided["reason"]) == ("closed", "admin", "announced")
    again = api.send("POST", "/calendarExceptions", wish).json()
    assert again == decided
    api.send("PUT", "/calendarExceptions/XNYS/2026-11-27", {"state": "open", "why": "half a day"})
    assert [(i["calendar"], i["day"]) for page in api.pages("/calendarExceptions", limit=1) for i in page] == [
        ("XKRX", "2026-12-31"),
        ("XNYS", "2026-11-27"),
    ]
    assert api.send("PUT", "/calendarExceptions/LSE/2026-11-27", word).status_code == 422


# --- silences, and what Slack refused


def test_a_silence_is_made_and_ended_with_who_and_why_and_keeps_back_meanwhile(api: Api, seoul: Seoul) -> None:
    wish = {"pattern": "past-due/krx.*", "endsAt": kst(hour=12).isoformat(), "why": "KRX moves house"}
    made = api.send("POST", "/silences", wish, who="user").json()
    assert (made["holds"], made["madeBy"], made["reason"], made["keptBack"]) == (True, "user", wish["why"], 0)
    assert made["endsAt"] == "2026-09-16T12:00:00+09:00"
    with connect(seoul.url, autocommit=True) as connection:
        for key in ("past-due/krx.prices/x", "past-due/finra.short_volume/x"):
            alerts.put(connection, key=key, severity="error", text="x")
        connection.execute(query("alerts.mark_silenced"))
    (shown,) = api.read("/silences", holds=True)["items"]
    assert shown == {**made, "keptBack": 1}
    ended = api.send("POST", f"/silences/{made['silenceId']}/end", {"why": "they have moved"}).json()
    assert (ended["holds"], ended["liftedBy"], ended["liftedWhy"]) == (False, "admin", "they have moved")
    again = api.send("POST", f"/silences/{made['silenceId']}/end", {"why": "twice"})
    assert (again.status_code, "No silence" in again.json()["detail"]) == (409, True)
    another = api.send("POST", "/silences", {**wish, "pattern": "*"}).json()
    numbers = [each["silenceId"] for page in api.pages("/silences", limit=1) for each in page]
    assert numbers == [another["silenceId"], made["silenceId"]]
    assert [each["silenceId"] for each in api.read("/silences", holds=False)["items"]] == [made["silenceId"]]
    assert api.send("POST", "/silences/999/end", {"why": "x"}).status_code == 404


@pytest.mark.parametrize(
    ("wrong", "status", "word"),
    [
        ({"endsAt": kst(hour=7).isoformat()}, 409, "ends in the future"),
        ({"endsAt": "9999-12-31T23:59:59-12:00"}, 409, "more than 366 days away"),
        ({"endsAt": "2026-09-16T12:00:00"}, 422, "endsAt"),
        ({"endsAt": None}, 422, "endsAt"),
        ({"pattern": ""}, 422, "pattern"),
        ({"why": " "}, 422, "why"),
        ({"who": "somebody else"}, 422, "who"),
    ],
)
def test_a_silence_without_an_end_a_reason_or_a_key_is_refused_in_words(
    api: Api, seoul: Seoul, wrong: dict[str, Any], status: int, word: str
) -> None:
    wish = {"pattern": "*", "endsAt": kst(hour=12).isoformat(), "why": "a test", **wrong}
    answer = api.send("POST", "/silences", wish)
    assert (answer.status_code, word in answer.text) == (status, True)
    assert api.read("/silences")["items"] == []


def test_an_alert_that_slack_refused_is_shown_and_decided_on_with_who_and_why(api: Api, seoul: Seoul) -> None:
    first, second = (
        int(
            seoul.one(
                "insert into ops.alerts (alert_key, severity, text, next_try_at, created_at, refused_at, refused_why)"
                " values (%s, 'error', 'x', collect.clock(), collect.clock(), collect.clock(), 'invalid_payload')"
                " returning alert_id",
                key,
            )["alert_id"]
        )
        for key in ("a/1", "a/2")
    )
    assert [each["alertId"] for each in api.read("/alerts", isPutAside=True)["items"]] == [second, first]
    retried = api.send("POST", f"/alerts/{first}/retry", {"why": "its text was mended"}).json()
    assert (retried["refusedAt"], retried["settledBy"]) == (None, "admin")
    dropped = api.send("POST", f"/alerts/{second}/drop", {"why": "it is old"}, who="user").json()
    assert (dropped["refusedWhy"], dropped["settledBy"], dropped["settledWhy"]) == (
        "invalid_payload",
        "user",
        "it is old",
    )
    assert api.read("/alerts", isPutAside=True)["items"] == []
    for what in ("retry", "drop"):
        assert api.send("POST", f"/alerts/{first}/{what}", {"why": "once more"}).status_code == 409
