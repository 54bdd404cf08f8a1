"""Issues on GitHub: one for each incident, opened, changed and closed; never two, whatever is lost or killed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import httpx
import pytest

from include.engine import incidents, issues, silences
from include.engine.db import transaction
from include.ops import github
from include.outputs import lease as leases
from tests.engine.seoul import DAY, Seoul, kst
from tests.fixtures_sandbox import RunningSandbox, Start

REPO, TOKEN = "me/incidents", "a-secret-of-github"
KEY = "failing/finra.short_volume"
Drain = Callable[..., github.Drained]


@pytest.fixture
def seoul(database: str) -> Iterator[Seoul]:
    here = Seoul(database)
    here.at(kst(DAY, 5))
    yield here
    here.close()


@pytest.fixture
def running(sandbox: Start, seoul: Seoul) -> RunningSandbox:
    return sandbox(clock=lambda: seoul.one("select collect.clock() as at")["at"])


@pytest.fixture
def drain(seoul: Seoul, running: RunningSandbox, caplog: pytest.LogCaptureFixture) -> Iterator[Drain]:
    """Sends what waits; no test may find the token in a log."""
    caplog.set_level(logging.DEBUG)

    def send(repository: str = REPO, token: str = TOKEN) -> github.Drained:
        where = github.github(f"{running.url}/api.github.com", token, repository)
        return github.drain(seoul.url, "me", where, pause=lambda seconds: None)

    yield send
    assert TOKEN not in caplog.text


def opened(
    seoul: Seoul, key: str = KEY, text: str = "It failed twice. @everyone, see #1", severity: Any = "error"
) -> None:
    with transaction(seoul.url) as connection:
        incidents.open(connection, key=key, severity=severity, text=text, stream="finra.short_volume")


def closed(seoul: Seoul, key: str = KEY, *, mended: bool = True) -> None:
    with transaction(seoul.url) as connection:
        incidents.close(connection, [key], "it is well again.", mended=mended)


def audited(seoul: Seoul) -> int:
    with transaction(seoul.url) as connection:
        return issues.want(connection, opens=True)


def there(running: RunningSandbox, repository: str = REPO) -> list[dict[str, Any]]:
    """The issues that GitHub has."""
    found = {each["name"]: each["issues"] for each in running.control("GET", "github")["repositories"]}
    return found.get(repository, [])


def asked(running: RunningSandbox) -> list[str]:
    """The kinds of the requests since the last call, in order."""
    kinds = [one["kind"] for one in running.requests(host="api.github.com")]
    running.control("DELETE", "log")
    return kinds


def row(seoul: Seoul) -> dict[str, Any]:
    return seoul.one("select * from ops.issues")


# --- the plain way ------------------------------------------------------------------------------------


def test_an_incident_has_one_issue_that_is_opened_changed_and_closed(
    seoul: Seoul, running: RunningSandbox, drain: Drain
) -> None:
    opened(seoul)
    assert drain() == github.Drained(0), "an audit opens issues, and nobody else"
    assert audited(seoul) == 1
    assert drain() == github.Drained(1)
    (issue,) = there(running)
    assert (issue["title"], issue["labels"], issue["state"]) == (f"[error] {KEY}", ["pipeline-failure"], "open")
    assert "```text\nIt failed twice. @everyone, see #1\n```" in issue["body"], "words only: nobody is called"
    found = row(seoul)
    assert (found["state"], found["number"], found["url"]) == ("known", 1, "https://github.com/me/incidents/issues/1")

    seoul.advance(days=1)
    opened(seoul)
    assert (audited(seoul), asked(running)) == (0, ["create"]), "seen again is no news"
    opened(seoul, text="It failed five times.", severity="critical")
    assert (audited(seoul), drain()) == (1, github.Drained(1))
    (issue,) = there(running)
    assert (issue["title"], "five times" in issue["body"]) == (f"[critical] {KEY}", True)

    closed(seoul)
    assert drain() == github.Drained(1), "that it is over is not kept until the next audit"
    (issue,) = there(running)
    assert (issue["state"], issue["reason"], "it is well again." in issue["body"]) == ("closed", "completed", True)
    assert (audited(seoul), drain(), asked(running)) == (0, github.Drained(0), ["update", "update"])

    opened(seoul)
    audited(seoul)
    drain()
    assert [each["state"] for each in there(running)] == ["closed", "open"], "a new incident has a new issue"


def test_what_ends_without_being_mended_is_not_completed_and_what_was_never_sent_is_not_made(
    seoul: Seoul, running: RunningSandbox, drain: Drain
) -> None:
    opened(seoul)
    audited(seoul)
    drain()
    closed(seoul, mended=False)
    opened(seoul, key="lag/x")
    audited(seoul)
    closed(seoul, key="lag/x")
    drain()
    assert [(each["state"], each["reason"]) for each in there(running)] == [("closed", "not_planned")]
    assert [each["state"] for each in seoul.sql("select state from ops.issues order by 1")] == ["known", "needless"]


def test_a_silence_keeps_an_issue_from_being_opened_and_not_from_being_closed(
    seoul: Seoul, running: RunningSandbox, drain: Drain
) -> None:
    opened(seoul)
    audited(seoul)
    drain()
    silences.make(seoul.url, "*", kst(DAY, 12), "me", "because")
    opened(seoul, key="lag/x")
    assert audited(seoul) == 0
    closed(seoul)
    drain()
    assert [each["state"] for each in there(running)] == ["closed"]
    seoul.at(kst(DAY, 13))
    audited(seoul)
    drain()
    assert len(there(running)) == 2


def test_an_issue_that_a_person_closed_stays_closed_and_is_still_told_of_the_end(
    seoul: Seoul, running: RunningSandbox, drain: Drain
) -> None:
    opened(seoul)
    audited(seoul)
    drain()
    api = {"Authorization": f"Bearer {TOKEN}"}
    httpx.patch(f"{running.url}/api.github.com/repos/{REPO}/issues/1", json={"state": "closed"}, headers=api)
    opened(seoul, text="worse")
    audited(seoul)
    drain()
    assert there(running)[0]["state"] == "closed"


# --- lost, killed, refused ----------------------------------------------------------------------------


@pytest.mark.parametrize("fault", [{"apply": True}, {"apply": True, "status": 502}, {"truncate": True}], ids=str)
def test_an_issue_whose_answer_was_lost_is_found_again_and_not_made_twice(
    fault: dict[str, Any], seoul: Seoul, running: RunningSandbox, drain: Drain
) -> None:
    running.switch("github", "pulls", repository=REPO, count=3)
    opened(seoul)
    audited(seoul)
    running.fault(match={"kind": "create"}, **fault)
    assert drain().error
    assert (row(seoul)["state"], len(there(running))) == ("sending", 1)
    running.switch("github", "pulls", repository=REPO, count=150)
    assert (drain(), asked(running)) == (github.Drained(0), ["create"]), "not before an answer must have come"
    seoul.advance(minutes=3)
    opened(seoul, text="It failed three times.")
    audited(seoul)
    assert drain() == github.Drained(1), "it is found, and then told what is new"
    assert asked(running) == ["list", "list", "update"]
    assert (row(seoul)["number"], len(there(running)), "three times" in there(running)[0]["body"]) == (4, 1, True)


def test_an_issue_that_never_arrived_is_made_after_a_search_that_came_to_its_end(
    seoul: Seoul, running: RunningSandbox, drain: Drain
) -> None:
    opened(seoul)
    audited(seoul)
    running.fault(match={"kind": "create"}, reset=True)
    running.fault(match={"kind": "list"}, status=503)
    drain()
    seoul.advance(minutes=3)
    assert drain().error, "a search that failed proves nothing"
    assert row(seoul)["state"] == "sending"
    seoul.advance(minutes=10)
    assert drain() == github.Drained(1)
    assert (asked(running), len(there(running))) == (["create", "list", "list", "create"], 1)


class Killed(BaseException):
    """What no code of ours expects."""


@pytest.mark.parametrize("step", ["make", "_confirm"])
def test_a_sender_that_dies_around_the_request_leaves_one_issue(
    step: str, seoul: Seoul, running: RunningSandbox, drain: Drain, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened(seoul)
    audited(seoul)
    owner = github.Api if step == "make" else github._Sending

    def die(*given: object) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(owner, step, die)
        with pytest.raises(Killed):
            drain()
    seoul.advance(minutes=6)
    assert drain() == github.Drained(1)
    assert (len(there(running)), row(seoul)["state"]) == (1, "known")


def test_one_sender_at_a_time_and_a_lost_lease_writes_nothing(
    seoul: Seoul, running: RunningSandbox, drain: Drain, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened(seoul)
    audited(seoul)
    held = leases.claim(seoul.url, github.LEASE, "another")
    assert isinstance(held, leases.PublishLease)
    assert (drain(), asked(running)) == (github.Drained(0), [])
    held.give_back()
    make = github.Api.make

    def slowly(api: github.Api, given: Any) -> Any:
        made = make(api, given)
        seoul.advance(minutes=6)
        assert isinstance(leases.claim(seoul.url, github.LEASE, "another"), leases.PublishLease)
        return made

    monkeypatch.setattr(github.Api, "make", slowly)
    assert "no longer holds the lease" in str(drain().error)
    assert row(seoul)["state"] == "sending"
    monkeypatch.setattr(github.Api, "make", make)
    seoul.advance(minutes=6)
    assert (drain(), len(there(running))) == (github.Drained(1), 1)


EXCEEDED = {"X-RateLimit-Remaining": "0"}
QUICKLY = '{"message":"Validation Failed","errors":[{"message":"was submitted too quickly"}]}'
LIMITS: dict[str, tuple[dict[str, Any], float]] = {
    "hour": ({"status": 403, "headers": EXCEEDED, "body": '{"message":"API rate limit exceeded"}'}, 60),
    "secondary": ({"status": 403, "body": '{"message":"You have exceeded a secondary rate limit."}'}, 60),
    "secondary with a wait": ({"status": 429, "headers": {"Retry-After": "300"}, "body": "{}"}, 300),
    "too quick": ({"status": 422, "body": QUICKLY}, 600),
}


@pytest.mark.parametrize("limit", LIMITS)
def test_a_limit_is_waited_for_by_everybody_and_nothing_is_lost_or_made_twice(
    limit: str, seoul: Seoul, running: RunningSandbox, drain: Drain
) -> None:
    fault, wait = LIMITS[limit]
    for key in (KEY, "lag/x"):
        opened(seoul, key=key)
    audited(seoul)
    running.fault(match={"kind": "create"}, **fault)
    assert drain().error
    seoul.advance(seconds=wait - 20)
    assert drain().sent == 0
    assert asked(running) == ["create"], "nobody asks before the rest is over"
    assert row_of(seoul, KEY)["state"] == "wanted", "what was refused so did not arrive"
    seoul.advance(seconds=80)
    assert (drain(), asked(running), len(there(running))) == (github.Drained(2), ["create", "create"], 2)


def row_of(seoul: Seoul, key: str) -> dict[str, Any]:
    return seoul.one(
        "select s.* from ops.issues s join ops.incidents i using (incident_id) where incident_key = %s", key
    )


def test_the_hours_limit_is_waited_for_until_githubs_own_clock_says_that_it_ends(
    seoul: Seoul, running: RunningSandbox, drain: Drain
) -> None:
    running.switch("github", "limit", left=0)
    opened(seoul)
    audited(seoul)
    assert "rate limit" in str(drain().error)
    seoul.advance(minutes=59)
    assert drain().sent == 0
    seoul.advance(minutes=2)
    assert drain() == github.Drained(1)
    assert asked(running) == ["create", "create"]


REFUSALS: dict[str, tuple[str, str, dict[str, Any] | None]] = {
    "wrong token": (REPO, "invalid-token", None),
    "no right": (REPO, "readonly-token", None),
    "no repository": ("nobody/there", TOKEN, None),
    "no issues": (REPO, TOKEN, {"switch": "issues", "on": False}),
}


@pytest.mark.parametrize("why", REFUSALS)
def test_a_github_that_refuses_everything_is_told_elsewhere_and_costs_nothing_else(
    why: str, seoul: Seoul, running: RunningSandbox, drain: Drain
) -> None:
    repository, token, order = REFUSALS[why]
    opened(seoul)
    audited(seoul)
    if order:
        running.switch("github", repository=REPO, **order)
    assert drain(repository, token).error
    assert seoul.one("select count(*) as n from ops.alerts where alert_key like 'outbox/github/%%'")["n"] == 1
    assert audited(seoul) == 0, "of the sending itself no issue is wanted"
    running.switch("github", "issues", repository=REPO, on=True)
    seoul.advance(minutes=16)
    assert (drain(), len(there(running))) == (github.Drained(1), 1)


def test_an_issue_that_somebody_deleted_is_given_up_and_one_whose_repository_is_out_of_reach_is_not(
    seoul: Seoul, running: RunningSandbox, drain: Drain
) -> None:
    opened(seoul)
    audited(seoul)
    drain()
    opened(seoul, text="worse")
    audited(seoul)
    assert drain(token="invalid-token").error
    running.switch("github", "issues", repository=REPO, on=False)
    seoul.advance(minutes=16)
    assert "no issues now" in str(drain().error)
    running.switch("github", "issues", repository=REPO, on=True)
    assert row(seoul)["state"] == "known"
    running.switch("github", "delete", repository=REPO, number=1)
    seoul.advance(minutes=16)
    drain()
    assert (row(seoul)["state"], "deleted" in row(seoul)["last_error"]) == ("given_up", True)
    closed(seoul)
    seoul.advance(minutes=16)
    assert (drain(), there(running)) == (github.Drained(0), [])


def test_a_repository_that_has_another_name_now_is_followed_and_another_host_gets_no_token(
    seoul: Seoul, running: RunningSandbox, drain: Drain
) -> None:
    opened(seoul)
    audited(seoul)
    drain()
    running.switch("github", "move", repository=REPO, to="me/other")
    opened(seoul, text="worse")
    opened(seoul, key="lag/x")
    audited(seoul)
    assert drain() == github.Drained(2)
    assert [("worse" in each["body"]) for each in there(running, "me/other")] == [True, False]
    opened(seoul, text="worst")
    audited(seoul)
    away = {"Location": f"http://localhost:{running.url.rpartition(':')[2]}/api.github.com/repositories/1/issues/1"}
    running.fault(match={"kind": "update"}, status=307, headers=away)
    asked(running)
    assert "another host" in str(drain().error)
    assert asked(running) == ["update"]


def test_a_token_that_may_not_label_makes_the_issue_once_and_says_so(
    seoul: Seoul, running: RunningSandbox, drain: Drain
) -> None:
    opened(seoul)
    audited(seoul)
    running.fault(match={"kind": "create"}, apply=True)
    drain(token="nopush-token")
    seoul.advance(minutes=3)
    drain(token="nopush-token")
    assert len(there(running)) == 1, "what has no label is found as well"
    assert "label" in row(seoul)["last_error"]
    assert seoul.one("select text from ops.incidents where incident_key = 'outbox/github'")["text"].startswith(
        "Issue 1 of"
    )


@pytest.mark.parametrize("body", ["<html>sign in</html>", "[]", '{"number": 7}'])
def test_a_garbage_answer_is_no_issue_and_no_end(
    body: str, seoul: Seoul, running: RunningSandbox, drain: Drain
) -> None:
    opened(seoul)
    audited(seoul)
    running.fault(match={"kind": "create"}, n=1, status=201, body=body)
    running.fault(match={"kind": "list"}, n=1, status=200, body=body)
    assert drain().error
    seoul.advance(minutes=3)
    if body == "[]":
        assert drain().sent == 1, "an empty list is an answer"
    else:
        assert drain().error
        seoul.advance(minutes=10)
        assert drain().sent == 1
    assert len(there(running)) == 1


def test_a_text_of_any_length_and_content_fits(seoul: Seoul, running: RunningSandbox, drain: Drain) -> None:
    opened(seoul, key="x/" + "k" * 400, text="````\n" + "가" * 60_000)
    audited(seoul)
    assert drain() == github.Drained(1)
    (issue,) = there(running)
    assert (len(issue["title"]) <= 256, issue["body"].startswith("`````text\n````\n")) == (True, True)
    with transaction(seoul.url) as connection:
        incidents.close(connection, ["x/" + "k" * 400], "완" * 60_000)
    assert drain() == github.Drained(1)


def test_the_connection_says_what_it_lacks_and_shows_no_token() -> None:
    lacking = ((None, REPO, "a token"), ("", REPO, "a token"), (TOKEN, None, "a repo"), (TOKEN, "x", "a repo"))
    for token, repository, word in lacking:
        with pytest.raises(github.GitHubSettingsError, match=word):
            github.github(None, token, repository)
    made = github.github("", TOKEN, REPO)
    assert (made.endpoint, TOKEN in repr(made)) == ("https://api.github.com", False)
    assert timedelta(seconds=github.LONGEST_SECONDS) <= timedelta(hours=2)
