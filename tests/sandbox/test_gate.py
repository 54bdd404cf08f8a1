from __future__ import annotations

import socket
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from include.sandbox.exchange import SwitchError
from include.sandbox.faults import parse
from tests.fixtures_sandbox import RunningSandbox, Start

FILE = "/cdn.finra.org/equity/regsho/daily/CNMSshvol20260915.txt"


@pytest.fixture
def running(sandbox: Start) -> RunningSandbox:
    return sandbox()


def test_a_status_is_answered_so_often_and_no_more(running: RunningSandbox) -> None:
    running.fault(match={"host": "cdn.finra.org"}, n=2, status=429, headers={"Retry-After": "7"}, body="slow down")
    answers = [running.get(FILE) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [429, 429, 200]
    assert answers[0].headers["retry-after"] == "7"
    assert answers[0].text == "slow down"
    assert [entry["fault"] for entry in running.requests()] == ["429", "429", None]


def test_a_fault_waits_for_its_turn_and_for_its_match(running: RunningSandbox) -> None:
    running.fault(match={"path_contains": "CNMS", "method": "get", "kind": "daily_file"}, skip=1, status=503)
    other = FILE.replace("CNMS", "FNYX")
    codes = [running.get(path).status_code for path in (other, FILE, other, FILE, FILE)]
    assert codes == [200, 200, 200, 503, 200]


def test_a_fault_without_a_number_lasts_until_it_is_removed(running: RunningSandbox) -> None:
    running.fault(n=None, status=500)
    assert [running.get(FILE).status_code for _ in range(3)] == [500] * 3
    assert running.control("DELETE", "faults") == {"removed": 1}
    assert running.get(FILE).status_code == 200


def test_a_reset_is_a_reset_and_the_handler_did_not_run(running: RunningSandbox) -> None:
    running.fault(reset=True)
    with pytest.raises(httpx.ReadError):
        running.get(FILE)
    assert running.get(FILE).status_code == 200


def test_a_truncated_answer_announces_more_than_it_sends(running: RunningSandbox) -> None:
    whole = running.get(FILE).content
    for truncate, sent in ((True, len(whole) // 2), (100, 100)):
        running.fault(truncate=truncate)
        with httpx.stream("GET", f"{running.url}{FILE}") as answer:
            assert answer.headers["content-length"] == str(len(whole))
            received: list[bytes] = []
            with pytest.raises(httpx.RemoteProtocolError):
                received.extend(answer.iter_raw())
        assert whole[:sent] == b"".join(received)


def test_a_slow_answer_is_late_and_complete(running: RunningSandbox) -> None:
    whole = running.get(FILE).content
    running.fault(slow_seconds=0.4)
    begun = time.monotonic()
    assert running.get(FILE).content == whole
    assert time.monotonic() - begun >= 0.4
    assert running.requests()[-1]["took"] >= 0.4


def test_apply_does_the_work_and_loses_the_answer(running: RunningSandbox) -> None:
    running.fault(match={"kind": "webhook"}, apply=True)
    with pytest.raises(httpx.ReadError):
        httpx.post(running.slack_url, json={"text": "once"})
    assert [one["text"] for one in running.control("GET", "slack")["messages"]] == ["once"]
    running.fault(match={"kind": "webhook"}, apply=True, status=504)
    assert httpx.post(running.slack_url, json={"text": "twice"}).status_code == 504
    assert running.control("GET", "slack")["count"] == 2


def test_pages_empty_bodies_and_drifted_schemas_come_in_place_of_data(running: RunningSandbox) -> None:
    good = running.get(FILE).text
    running.fault(html_block_page=True)
    running.fault(html_block_page=True, status=200)
    running.fault(empty=True)
    running.fault(schema_drift=True)
    running.fault(schema_drift="extra")
    blocked, page, empty, renamed, extra = (running.get(FILE) for _ in range(5))
    assert (blocked.status_code, page.status_code) == (403, 200)
    for answer in (blocked, page):
        assert answer.headers["content-type"].startswith("text/html")
        assert "<html>" in answer.text
    assert (empty.status_code, empty.content) == (200, b"")
    assert renamed.text.splitlines()[0] != good.splitlines()[0]
    assert extra.text.splitlines()[0] == good.splitlines()[0] + "|Venue"


@pytest.mark.parametrize(
    ("rule", "word"),
    [
        ({"stauts": 503}, "stauts"),
        ({"match": {"hots": "x"}, "status": 503}, "hots"),
        ({"match": {}}, "does something"),
        ({"status": 503, "n": 0}, "above zero"),
        ({"schema_drift": "sideways"}, "renamed"),
        ("503", "JSON object"),
    ],
)
def test_a_fault_that_cannot_be_read_is_refused_in_words(rule: object, word: str) -> None:
    with pytest.raises(SwitchError, match=word):
        parse(rule)


def test_of_a_list_of_faults_none_is_set_when_one_cannot_be_read(running: RunningSandbox) -> None:
    for rules in ([{"status": 503}, {"stauts": 503}], "503", {"match": {"hots": "x"}, "status": 1}):
        answer = httpx.post(f"{running.url}/_sandbox/faults", json=rules)
        assert answer.status_code == 400
    assert httpx.post(f"{running.url}/_sandbox/faults", content=b"not json").status_code == 400
    assert running.control("GET", "faults") == {"faults": []}


def test_every_request_is_logged_with_simulated_and_real_time(running: RunningSandbox) -> None:
    running.get(FILE + "?a=1")
    running.get("/cdn.finra.org/nothing")
    log = running.get("/_sandbox/log").json()
    assert log["count"] == 2
    assert log["by_host"] == {"cdn.finra.org": 2}
    assert log["by_second"] == {"2026-09-15T23:40:00+00:00": 2}
    first, second = log["requests"]
    assert (first["method"], first["status"], first["query"], first["kind"]) == ("GET", 200, "a=1", "daily_file")
    assert first["sent"] == len(running.get(FILE).content)
    assert first["at"] == "2026-09-15T23:40:00+00:00"
    assert second["real"] > first["real"]
    assert (second["status"], second["kind"]) == (403, "other")
    assert [one["number"] for one in running.requests(path="nothing")] == [2]
    assert running.requests(host="data.sec.gov") == []
    assert [one["number"] for one in running.requests(after="2")] == [3]
    running.control("DELETE", "log")
    assert running.requests() == []


def test_a_lost_answer_is_logged_all_the_same(running: RunningSandbox) -> None:
    running.fault(reset=True)
    with pytest.raises(httpx.ReadError):
        running.get(FILE)
    (entry,) = running.requests()
    assert (entry["fault"], entry["status"], entry["sent"]) == ("reset", None, 0)


def test_the_rate_is_the_most_within_any_second_and_the_shortest_gap(running: RunningSandbox) -> None:
    empty = running.get("/_sandbox/rate").json()
    assert empty == {"count": 0, "max_in_a_second": 0, "shortest_interval": None, "span_seconds": 0.0}
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(running.get, [FILE] * 8))
    rate = running.get("/_sandbox/rate?host=cdn.finra.org").json()
    assert rate["count"] == 8
    assert 1 <= rate["max_in_a_second"] <= 8
    assert rate["shortest_interval"] < 1
    assert running.get("/_sandbox/rate?host=data.sec.gov").json()["count"] == 0


def test_a_host_that_nobody_plays_is_said_so(running: RunningSandbox) -> None:
    answer = running.get("/example.org/index.html")
    assert answer.status_code == 502
    assert "example.org" in answer.json()["error"]
    assert running.get("/").status_code == 502
    assert running.requests()[0]["kind"] == "nobody"


def test_head_gives_the_headers_of_get_without_its_body(running: RunningSandbox) -> None:
    whole = running.get(FILE)
    head = httpx.head(f"{running.url}{FILE}")
    assert head.status_code == 200
    assert head.content == b""
    assert head.headers["content-length"] == str(len(whole.content))
    assert head.headers["etag"] == whole.headers["etag"]


def test_health_says_what_is_played_and_by_which_time(running: RunningSandbox) -> None:
    health = running.get("/_sandbox/health").json()
    assert health["status"] == "ok"
    assert {"cdn.finra.org", "huggingface.co", "hooks.slack.com"} <= set(health["hosts"])
    assert health["clock"] == running.get("/_sandbox/clock").json()["at"] == "2026-09-15T23:40:00+00:00"
    assert health["hub_url"] == running.url
    assert running.get("/_sandbox/nobody").status_code == 404


def test_a_caller_that_leaves_early_hurts_nobody(running: RunningSandbox) -> None:
    host, port = running.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as line:
        line.sendall(b"POST /services/T/B/X HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nhalf")
    assert running.get(FILE).status_code == 200
