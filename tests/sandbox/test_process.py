from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

ROOT = Path(__file__).resolve().parents[2]


@contextmanager
def process(*words: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, str]]]:
    """A sandbox process that answers, and the addresses that its line names."""
    child = subprocess.Popen(
        [sys.executable, "-m", "include.sandbox", *words], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    try:
        line = child.stdout.readline().split()
        assert line[:2] == ["sandbox", "ready"]
        yield child, dict(word.split("=", 1) for word in line[2:])
    finally:
        child.kill()
        child.wait()
        child.stdout.close()


def refused(*words: str) -> str:
    """What a sandbox that cannot start says."""
    ended = subprocess.run(
        [sys.executable, "-m", "include.sandbox", *words], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert ended.returncode == 2
    assert ended.stdout == ""
    assert "Traceback" not in ended.stderr
    return ended.stderr


def test_it_says_when_it_answers_keeps_the_hub_and_ends_cleanly_on_term(tmp_path: Path) -> None:
    state = tmp_path / "state of the sandbox"
    for round_number in (1, 2):
        with process("--port", "0", "--hub-port", "0", "--state", str(state)) as (child, told):
            assert told["url"] != told["hub"]
            assert httpx.get(f"{told['url']}/_sandbox/health").json()["status"] == "ok"
            answer = httpx.post(
                f"{told['hub']}/api/repos/create",
                json={"name": "kept", "organization": "me", "type": "dataset"},
                headers={"Authorization": "Bearer hf_a"},
            )
            assert answer.status_code == (200 if round_number == 1 else 409)
            child.send_signal(signal.SIGTERM)
            assert child.wait(timeout=15) == 0
    assert state.stat().st_mode & 0o077 == 0


def test_a_taken_port_is_named_and_nothing_is_started() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert f"127.0.0.1:{port}" in refused("--port", str(port))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--recordings", "/no/such/place"), "holds no recordings.tsv"),
        (("--companies", "0"), "between 1 and 20000"),
        (("--port", "many"), "invalid int value"),
        (("--state", "/proc/nothing/here"), "cannot use"),
    ],
)
def test_what_cannot_be_used_is_said_in_a_sentence(words: tuple[str, ...], said: str) -> None:
    assert said in refused(*words)
