"""Airflow's own old runs: deleted over REST, the oldest first, and a failure is said and costs nothing."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

import pytest

from include import settings
from include.operators import airflow_runs, notes
from include.settings import Settings


class Api(BaseHTTPRequestHandler):
    """An api-server with some runs."""

    runs: ClassVar[list[str]] = []
    asked: ClassVar[list[dict[str, list[str]]]] = []
    broken = False

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def _say(self, status: int, body: Any = None) -> None:
        answer = json.dumps(body or {}).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self._say(201, {"access_token": "t"})

    def do_GET(self) -> None:
        asked = parse_qs(urlsplit(self.path).query)
        type(self).asked.append(asked)
        limit = int(asked["limit"][0])
        self._say(200, {"dag_runs": [{"dag_id": "finra", "dag_run_id": name} for name in self.runs[:limit]]})

    def do_DELETE(self) -> None:
        if self.broken:
            self._say(500)
            return
        type(self).runs.remove(self.path.rpartition("/")[2])
        self._say(204)


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> Iterator[Settings]:
    (tmp_path / "passwords.json").write_text('{"admin": "x"}')
    server = ThreadingHTTPServer(("127.0.0.1", 0), Api)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    Api.runs, Api.asked, Api.broken = [f"r{n:03}" for n in range(250)], [], False
    monkeypatch.setenv("DAYBOOK_API_URL", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("DAYBOOK_API_PASSWORDS", str(tmp_path / "passwords.json"))
    notes._login.cache_clear()
    yield settings.load()
    notes._login.cache_clear()
    server.shutdown()
    server.server_close()


def test_the_oldest_runs_that_ended_are_deleted_so_many_at_most(kept: Settings) -> None:
    assert airflow_runs.clean(kept, 120) == (120, "")
    assert Api.runs[0] == "r120"
    for asked in Api.asked:
        assert asked["state"] == ["success", "failed"]
        assert asked["order_by"] == ["run_after"]
        assert asked["run_after_lt"] == asked["end_date_lt"]


def test_it_ends_when_none_is_left_or_it_is_asked_to(kept: Settings) -> None:
    assert airflow_runs.clean(kept, 1_000, lambda: len(Api.runs) <= 200) == (50, "")
    assert airflow_runs.clean(kept, 1_000) == (200, "")


def test_a_failure_is_said_and_what_was_deleted_is_counted(kept: Settings) -> None:
    Api.broken = True
    deleted, trouble = airflow_runs.clean(kept, 10)
    assert deleted == 0
    assert "500" in trouble


def test_who_keeps_everything_asks_nothing(kept: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DAYBOOK_KEEP_RUNS", "0")
    assert airflow_runs.clean(settings.load(), 10) == (0, "")
    assert Api.asked == []


def test_without_a_way_to_airflow_nothing_is_cleaned_and_that_is_said() -> None:
    assert airflow_runs.clean(settings.load(), 10) == (0, "Airflow's REST API is not known here")


@pytest.mark.parametrize("days", ["-1", "many", "99999"])
def test_a_number_of_days_that_cannot_be_is_refused_with_its_name(monkeypatch: pytest.MonkeyPatch, days: str) -> None:
    monkeypatch.setenv("DAYBOOK_KEEP_ALERTS", days)
    with pytest.raises(settings.SettingError, match="DAYBOOK_KEEP_ALERTS"):
        settings.load()


def test_what_is_kept_for_how_long_is_a_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DAYBOOK_KEEP_ALERTS", "7")
    monkeypatch.setenv("DAYBOOK_KEEP_RUNS", "0")
    found = settings.load()
    assert (found.keep_alerts, found.keep_runs) == (timedelta(days=7), None)
