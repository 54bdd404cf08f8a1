from __future__ import annotations

import httpx
import pytest

from tests.fixtures_sandbox import Start


def test_a_message_is_answered_ok_and_kept_in_order(sandbox: Start) -> None:
    running = sandbox()
    for text in ("first", "second"):
        answer = httpx.post(running.slack_url, json={"text": text, "blocks": [{"type": "divider"}]})
        assert (answer.status_code, answer.text) == (200, "ok")
    held = running.control("GET", "slack")
    assert [one["text"] for one in held["messages"]] == ["first", "second"]
    assert held["messages"][0]["payload"]["blocks"] == [{"type": "divider"}]
    assert held["messages"][0]["at"] == "2026-09-15T23:40:00+00:00"
    running.control("DELETE", "slack")
    assert running.control("GET", "slack")["count"] == 0


def test_the_secret_of_a_webhook_is_nowhere(sandbox: Start) -> None:
    running = sandbox()
    httpx.post(running.slack_url, json={"text": "hello"})
    everything = running.get("/_sandbox/log").text + running.get("/_sandbox/slack").text
    assert "/services/T0/B0/***" in everything
    assert "a-secret-of-slack" not in everything


@pytest.mark.parametrize(
    ("path", "body", "status", "word"),
    [
        ("/services/T0/B0/x", b"not json", 400, "invalid_payload"),
        ("/services/T0/B0/x", b"{}", 400, "no_text"),
        ("/services/T0", b'{"text": "x"}', 404, "no_service"),
    ],
)
def test_what_slack_refuses_is_refused(sandbox: Start, path: str, body: bytes, status: int, word: str) -> None:
    answer = httpx.post(f"{sandbox().url}{path}", content=body)
    assert (answer.status_code, answer.text) == (status, word)


@pytest.mark.parametrize("status", [403, 429, 500])
def test_slack_can_refuse_on_command(sandbox: Start, status: int) -> None:
    running = sandbox()
    running.fault(match={"kind": "webhook"}, status=status, headers={"Retry-After": "1"}, body="no")
    assert httpx.post(running.slack_url, json={"text": "x"}).status_code == status
    assert httpx.post(running.slack_url, json={"text": "x"}).status_code == 200
    assert running.control("GET", "slack")["count"] == 1
