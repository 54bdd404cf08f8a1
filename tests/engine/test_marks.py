"""Whatever is logged while a cycle is worked says of which stream, window and attempt it is, and of which fetch."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest
from structlog.contextvars import get_contextvars

from include.contract import Mode
from include.engine import cycle, marks
from tests.engine.cdn import Trouble
from tests.engine.desk import TUESDAY, Desk


class _Kept(logging.Handler):
    """Keeps each line as Airflow would write it: the sentence, with the fields that are bound at that moment."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[tuple[str, dict[str, Any]]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append((record.getMessage(), get_contextvars()))


@pytest.fixture
def lines() -> Iterator[list[tuple[str, dict[str, Any]]]]:
    kept, log = _Kept(), logging.getLogger("include.engine")
    before = log.level
    log.addHandler(kept)
    log.setLevel(logging.INFO)
    yield kept.lines
    log.removeHandler(kept)
    log.setLevel(before)


def about(desk: Desk) -> dict[str, Any]:
    """What lines about the desk's last cycle have to carry."""
    row = desk.cycle()
    names = {"stream": row["stream"], "window": row["slot"], "cycle_id": row["cycle_id"], "attempt": row["attempt"]}
    assert all(names.values())
    return names


def test_a_failed_request_is_logged_with_its_fetch_in_a_poll_and_nothing_stays_bound(
    desk: Desk, lines: list[tuple[str, dict[str, Any]]]
) -> None:
    desk.cdn.publish(TUESDAY)
    desk.cdn.trouble("CNMS", TUESDAY, Trouble(503))
    verdict = desk.poll()
    (fetch,) = desk.sql("select fetch_id, request_key from collect.fetches where http_status = 503")
    ((said, fields),) = lines
    assert said == f"{fetch['request_key']}: HTTP 503 instead of data"
    assert fields == about(desk) | {"fetch_id": fetch["fetch_id"]}
    assert verdict.attempt == fields["attempt"]
    assert get_contextvars() == {}


@pytest.mark.parametrize("mode", [Mode.POLL, Mode.REPLAY])
def test_what_nobody_foresaw_is_logged_with_its_cycle(
    desk: Desk, lines: list[tuple[str, dict[str, Any]]], mode: Mode, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.cdn.publish(TUESDAY)

    def broken(*given: Any) -> None:
        raise ValueError("a bug")

    if mode is Mode.REPLAY:
        desk.poll()
        monkeypatch.setattr("include.engine.replay._units", broken)
        desk.replay(TUESDAY)
    else:
        monkeypatch.setattr(cycle, "_slice", broken)
        desk.poll()
    last, fields = lines[-1]
    assert last.endswith("failed unexpectedly")
    assert fields == about(desk)
    assert fields["attempt"] >= 1
    assert get_contextvars() == {}


def test_a_verdict_is_logged_with_the_cycle_that_is_over(desk: Desk, lines: list[tuple[str, dict[str, Any]]]) -> None:
    desk.cdn.publish(TUESDAY)
    verdict = desk.poll()
    marks.say(logging.getLogger("include.engine.said"), logging.INFO, verdict)
    assert lines == [(verdict.words, about(desk))]


def test_a_person_reads_the_sentence_first_and_then_what_it_is_about() -> None:
    def line(**bound: Any) -> str:
        record = logging.LogRecord("a.log", logging.WARNING, "", 1, "%s is slow", ("KRX",), None)
        with marks.bound(**bound):
            return marks.Readable("%(message)s").format(record)

    assert line(stream="krx.prices", window="2026-09-16", attempt=2, fetch_id=None) == (
        "KRX is slow [stream=krx.prices window=2026-09-16 attempt=2]"
    )
    assert line() == "KRX is slow"
