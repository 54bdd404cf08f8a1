from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.fixtures_sandbox import MovableClock, RunningSandbox, Start

REPO = "/api.github.com/repos/me/incidents"


@pytest.fixture
def running(sandbox: Start) -> RunningSandbox:
    return sandbox(clock=MovableClock())


def ask(running: RunningSandbox, method: str, where: str, token: str = "a-token", **more: Any) -> httpx.Response:
    url = where if "://" in where else f"{running.url}{where}"
    return httpx.request(method, url, headers={"Authorization": f"Bearer {token}"}, timeout=30, **more)


def make(running: RunningSandbox, title: str = "x", token: str = "a-token") -> dict[str, Any]:
    answer = ask(running, "POST", f"{REPO}/issues", token, json={"title": title, "body": "b", "labels": ["l"]})
    assert answer.status_code == 201, answer.text
    return answer.json()


def test_an_issue_is_made_changed_closed_and_read_again(running: RunningSandbox) -> None:
    made = make(running)
    assert (made["number"], made["state"], [one["name"] for one in made["labels"]]) == (1, "open", ["l"])
    assert made["html_url"] == "https://github.com/me/incidents/issues/1"
    ended = {"state": "closed", "state_reason": "not_planned", "title": "y"}
    changed = ask(running, "PATCH", f"{REPO}/issues/1", json=ended).json()
    assert (changed["title"], changed["state"], changed["state_reason"]) == ("y", "closed", "not_planned")
    assert changed["closed_at"] == "2026-09-15T23:40:00Z"
    assert ask(running, "GET", f"{REPO}/issues/1").json() == changed


def test_issues_come_in_pages_with_pull_requests_among_them(running: RunningSandbox) -> None:
    for number in range(5):
        make(running, str(number))
    running.switch("github", "pulls", repository="me/incidents", count=2)
    where, numbers = f"{REPO}/issues?state=all&per_page=3&sort=created&direction=desc", list[int]()
    while where:
        answer = ask(running, "GET", where)
        numbers += [each["number"] for each in answer.json()]
        where = answer.links.get("next", {}).get("url", "")
        assert not where or f"{running.url}/api.github.com/repositories/" in where
    assert numbers == [7, 6, 5, 4, 3, 2, 1]
    assert "pull_request" in ask(running, "GET", f"{REPO}/issues").json()[0]
    assert ask(running, "GET", f"{REPO}/issues?labels=l&per_page=2").headers["link"].count("rel=") == 2
    assert ask(running, "GET", f"{REPO}/issues?since=2026-09-16T00:00:00Z").json() == []


def test_what_is_refused_is_refused_in_githubs_words(running: RunningSandbox) -> None:
    make(running)
    for status, method, where, token, content in (
        (401, "GET", f"{REPO}/issues", "invalid-token", None),
        (403, "POST", f"{REPO}/issues", "readonly-token", {"title": "x"}),
        (404, "POST", "/api.github.com/repos/nobody/x/issues", "a-token", {"title": "x"}),
        (404, "GET", f"{REPO}/issues/9", "a-token", None),
        (422, "POST", f"{REPO}/issues", "a-token", {"title": " "}),
        (422, "PATCH", f"{REPO}/issues/1", "a-token", {"body": "x" * 65_537}),
    ):
        answer = ask(running, method, where, token, **({"json": content} if content else {}))
        assert (answer.status_code, answer.json()["status"]) == (status, str(status))
    assert make(running, token="nopush-token")["labels"] == []
    running.switch("github", "delete", repository="me/incidents", number=1)
    assert ask(running, "GET", f"{REPO}/issues/1").status_code == 410
    running.switch("github", "issues", repository="me/incidents", on=False)
    assert (
        ask(running, "POST", f"{REPO}/issues", json={"title": "x"}).json()["message"].startswith("Issues are disabled")
    )
    running.switch("github", "move", repository="me/incidents", to="me/other")
    moved = ask(running, "GET", f"{REPO}/issues/2")
    assert (moved.status_code, "/repositories/" in moved.headers["location"]) == (301, True)
    assert "a-token" not in running.get("/_sandbox/log").text + running.get("/_sandbox/github").text


def test_an_hours_requests_are_counted_and_told(running: RunningSandbox) -> None:
    running.switch("github", "limit", left=1)
    assert ask(running, "GET", f"{REPO}/issues").headers["x-ratelimit-remaining"] == "0"
    over = ask(running, "GET", f"{REPO}/issues")
    assert (over.status_code, over.headers["x-ratelimit-remaining"]) == (403, "0")
    assert over.json()["message"].startswith("API rate limit exceeded")
    assert int(over.headers["x-ratelimit-reset"]) == int(running.clock().timestamp()) + 3600
    running.clock.advance(hours=1)  # type: ignore[attr-defined]
    assert ask(running, "GET", f"{REPO}/issues").status_code == 200
