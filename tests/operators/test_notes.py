"""Notes are written where they can be, and never cost a task anything."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import pytest

from include.operators import notes
from tests.operators.stage import Ti, context


class Api(BaseHTTPRequestHandler):
    """An api-server that keeps what it is told."""

    refuses = False
    seen: ClassVar[list[tuple[str, str, dict[str, str], str | None]]] = []

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def _answer(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        type(self).seen.append((self.command, self.path, body, self.headers["Authorization"]))
        answer = b'{"access_token": "t0ken"}'
        self.send_response(500 if self.refuses and self.command == "PATCH" else 201)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    do_POST = do_PATCH = _answer  # noqa: N815 (the names that the server calls)


@pytest.fixture
def api(monkeypatch, tmp_path):
    (tmp_path / "passwords.json").write_text('{"admin": "marker-password"}')
    server = ThreadingHTTPServer(("127.0.0.1", 0), Api)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    Api.seen, Api.refuses = [], False
    notes._login.cache_clear()
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", f"http://127.0.0.1:{server.server_port}/")
    monkeypatch.setenv("AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE", str(tmp_path / "passwords.json"))
    yield Api
    server.shutdown()
    server.server_close()


def test_notes_go_to_the_task_its_lane_and_its_run_with_one_login(api):
    notes.task(context(Ti(run_id="manual__2026-09-16T00:40:00+00:00")), "DONE – all")
    notes.task(context(Ti(map_index=2)), "DONE – lane")
    notes.run(context(), "DONE – run")
    login, *written = api.seen
    assert login[:3] == ("POST", "/auth/token", {"username": "admin", "password": "marker-password"})
    run = "/api/v2/dags/finra/dagRuns/manual-1"
    assert [(path, body["note"]) for _, path, body, _ in written] == [
        (
            "/api/v2/dags/finra/dagRuns/manual__2026-09-16T00%3A40%3A00%2B00%3A00/taskInstances/short_volume"
            "?update_mask=note",
            "DONE – all",
        ),
        (f"{run}/taskInstances/short_volume/2?update_mask=note", "DONE – lane"),
        (f"{run}?update_mask=note", "DONE – run"),
    ]
    assert {token for *_, token in written} == {"Bearer t0ken"}


def test_a_long_note_is_cut_to_what_airflow_takes(api):
    notes.run(context(), "x" * 5_000)
    assert len(api.seen[-1][2]["note"]) == 1_000


def test_a_refused_note_costs_one_line_without_the_password(api, caplog):
    api.refuses = True
    notes.run(context(), "DONE – run")
    assert "could not be written" in caplog.text
    assert "marker-password" not in caplog.text


def test_an_api_server_that_is_away_costs_one_line(api, monkeypatch, caplog):
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "http://127.0.0.1:1")
    notes.run(context(), "DONE – run")
    assert "could not be written" in caplog.text


def test_without_an_address_or_a_login_there_are_no_notes(monkeypatch, caplog):
    monkeypatch.delenv("AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE", raising=False)
    notes.run(context(), "DONE – run")
    assert caplog.text == ""
