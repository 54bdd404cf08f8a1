"""The table of what the operator sees, row by row, over the real engine: cycle, task, checkpoint, event, alert."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from include.contract import Budget
from include.engine import changes, upkeep
from include.operators.endings import Ended
from include.operators.polling import Asked, poll
from tests.engine.cdn import Trouble
from tests.engine.conftest import cdn, desk  # noqa: F401
from tests.engine.desk import MONDAY, SMALL, STREAM, TUESDAY, WEDNESDAY, Desk, ny
from tests.operators.stage import OWNER, turn

FIRST, AGAIN = Asked(None, is_repeat=False), Asked(None, is_repeat=True)
PLACE = "window 2026-09-16 07:35 KST, session 2026-09-15"


@dataclass
class Table:
    """One stream as a task sees it, and what is left behind."""

    desk: Desk

    def tick(self, asked: Asked = FIRST, *, stop: Callable[[], bool] = lambda: False, **worker: Any) -> Ended:
        """One tick of the polling task."""
        owner = f"{OWNER} on here/1/a"
        return poll(self.desk.worker(owner=owner, stop=stop, **worker), self.desk.stream, asked, turn(stop=stop))

    @property
    def row(self) -> tuple[str, str | None]:
        """State and outcome of the newest window."""
        newest = self.desk.one("select * from collect.cycles where window_start is not null order by 1 desc limit 1")
        return newest["cycle_status"], newest["outcome"]

    @property
    def changed(self) -> bool:
        """Whether an event would be sent with a green end."""
        return bool(changes.untold(self.desk.url, self.desk.stream.name).changed)


@pytest.fixture
def seen(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Table:  # noqa: F811
    """Tuesday evening in New York; one file a day."""
    monkeypatch.setattr("include.operators.tick.HANDOVER_SECONDS", 0)
    desk.stream = SMALL
    return Table(desk)


def say(ended: Ended) -> tuple[str, str]:
    """How the task ends, and the first word of its note, which must name window and session."""
    word, _, rest = ended.words.partition(" – ")
    assert PLACE in rest, ended.words
    return ended.how, word


def test_all_read_and_applied(seen: Table) -> None:
    seen.desk.cdn.publish(TUESDAY)
    assert say(seen.tick()) == ("green", "DONE")
    assert (seen.row, seen.desk.checkpoint()) == (("SUCCESS", "success"), TUESDAY)
    assert seen.changed
    assert seen.desk.alerts() == []


def test_some_keys_failed(seen: Table) -> None:
    seen.desk.stream = replace(STREAM, recheck=None)
    seen.desk.cdn.publish(TUESDAY)
    seen.desk.cdn.trouble("FNRA", TUESDAY, *[Trouble() for _ in range(9)])
    assert say(seen.tick()) == ("green", "PARTIAL")
    assert (seen.row, seen.desk.checkpoint()) == (("SUCCESS", "partial"), TUESDAY)
    assert "FNRA/2026-09-15" in seen.desk.pending("failed")
    assert seen.changed
    assert seen.desk.alerts() == [], "only the second time in a row is told"
    seen.desk.at(ny(WEDNESDAY))
    seen.desk.cdn.publish(WEDNESDAY)
    seen.desk.cdn.trouble("FNRA", WEDNESDAY, *[Trouble() for _ in range(9)])
    assert seen.tick().words.startswith("PARTIAL")
    assert len(seen.desk.alerts()) == 1


def test_nothing_due(seen: Table) -> None:
    seen.desk.cdn.publish(TUESDAY)
    seen.desk.backfill(TUESDAY)
    ended = seen.tick()
    assert say(ended) == ("green", "NOTHING DUE")
    assert '"mode": "backfill"' in ended.words, "what would do it all the same"
    assert (seen.row, seen.desk.checkpoint()) == (("SUCCESS", "success"), TUESDAY)
    assert seen.desk.cycle()["success_reason"] in (None, "nothing_due")
    assert seen.desk.alerts() == []


def test_not_published_yet(seen: Table) -> None:
    ended = seen.tick()
    assert say(ended) == ("again", "WAITING")
    assert ended.wait.total_seconds() == pytest.approx(1_200, abs=10), (
        "at 19:00, which is 25 minutes after the window opened"
    )
    assert (seen.row, seen.desk.checkpoint(), seen.changed) == (("PENDING", None), None, False)
    assert seen.desk.alerts() == []


def test_past_the_last_try(seen: Table) -> None:
    seen.tick()
    seen.desk.advance(hours=5, minutes=20)
    assert say(seen.tick(AGAIN)) == ("red", "FAILED")
    assert (seen.row, seen.desk.checkpoint()) == (("FAILED", "failed_retriable"), None)
    assert "CNMS/2026-09-15" in seen.desk.pending()
    assert len(seen.desk.alerts()) == 1


def test_budget_reached(seen: Table) -> None:
    seen.desk.stream = replace(
        STREAM, recheck=None, budget=Budget(day_items=60, slice_items=600, slice_seconds=60, reason="a test")
    )
    seen.desk.cdn.publish(TUESDAY, {f"S{number}": (1, 0, 2) for number in range(80)})
    assert say(seen.tick()) == ("green", "BUDGET")
    assert (seen.row, seen.desk.checkpoint()) == (("BUDGET_EXHAUSTED", "success"), None)
    assert seen.changed
    assert seen.desk.alerts() == []


def test_answers_failed(seen: Table) -> None:
    seen.desk.cdn.publish(TUESDAY)
    seen.desk.cdn.trouble("CNMS", TUESDAY, *[Trouble() for _ in range(30)])
    assert say(seen.tick()) == ("red", "FAILED")
    assert (seen.row, seen.desk.checkpoint(), seen.changed) == (("FAILED", "failed_retriable"), None, False)
    assert seen.desk.alerts() == [], "only the second time in a row is told"
    seen.desk.advance(minutes=20)
    assert seen.tick().how == "red", "the make-up window"
    assert len(seen.desk.alerts()) == 1


def test_the_form_of_the_answers_changed(seen: Table) -> None:
    seen.desk.stream = replace(STREAM, recheck=None)
    seen.desk.cdn.publish(TUESDAY)
    for facility in ("CNMS", "FNSQ", "FNQC", "FNYX", "FNRA", "FORF"):
        seen.desk.cdn.put(facility, TUESDAY, {"AAPL": (1, 0, 2)}, header="Day|Name|Volume")
    assert say(seen.tick()) == ("red", "FAILED")
    assert (seen.row, seen.desk.checkpoint(), seen.changed) == (("FAILED", "failed_terminal"), None, False)
    assert [text for text in seen.desk.alerts() if text.startswith("finra.short_volume: FAILED – ")], "at once"


def test_answers_cannot_be_stored(seen: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    seen.desk.cdn.publish(TUESDAY)

    def full(*given: Any, **more: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("include.engine.raw.RawStore.put", full)
    assert say(seen.tick()) == ("red", "FAILED")
    assert (seen.row, seen.desk.checkpoint()) == (("FAILED", "failed_terminal"), None)
    assert len(seen.desk.alerts()) == 1, "at once"


def test_another_run_owns_it(seen: Table) -> None:
    seen.desk.open_poll(ny(TUESDAY, 18, 35), TUESDAY)
    seen.desk.claimed(owner="finra.short_volume of scheduled-1 on there/2/b")
    ended = seen.tick()
    assert say(ended) == ("skipped", "ANOTHER RUN")
    assert "is worked by finra.short_volume of scheduled-1 until 2026-09-16 07:45 KST" in ended.words
    assert (seen.row, seen.desk.alerts()) == (("RUNNING", None), [])


def test_cleared_when_the_cycle_is_over(seen: Table) -> None:
    seen.desk.cdn.publish(TUESDAY)
    first, again = seen.tick(), seen.tick(AGAIN)
    assert (again.how, say(again)) == (first.how, ("green", "DONE"))
    assert "was over at 2026-09-16 07:40 KST, by finra.short_volume of manual-1 (" in again.words
    assert '"start_date": "2026-09-15", "end_date": "2026-09-15", "force": true}' in again.words
    assert len(seen.desk.cdn.requests) == 1


def test_cleared_or_stopped_while_running(seen: Table) -> None:
    seen.desk.stream = replace(STREAM, recheck=None)
    seen.desk.cdn.publish(TUESDAY)
    ended = seen.tick(stop=lambda: len(seen.desk.cdn.requests) >= 2)
    assert say(ended) == ("again", "STOPPED")
    assert seen.row == ("PENDING", None)
    assert seen.desk.cycle()["lease_token"] is None
    assert say(seen.tick(AGAIN)) == ("green", "DONE"), "the new attempt goes on at once"
    assert len(seen.desk.cdn.asked("CNMS")) == 1


def test_a_killed_task_takes_the_verdict_of_its_row(seen: Table) -> None:
    seen.desk.cdn.publish(TUESDAY)
    seen.desk.open_poll(ny(TUESDAY, 18, 35), TUESDAY)
    seen.desk.claimed(owner=f"{OWNER} on there/2/b")
    ended = seen.tick(AGAIN)
    assert say(ended) == ("again", "WAITING")
    assert ended.wait.total_seconds() == pytest.approx(300, abs=10), "until its lease ends"
    seen.desk.advance(minutes=5, seconds=1)
    upkeep.recover(seen.desk.url)
    assert seen.row == ("FAILED", "failed_retriable")
    ended = seen.tick(AGAIN)
    assert (ended.how, "lease expired" in ended.words) == ("red", True)
    assert seen.desk.cdn.requests == [], "nothing asks again for this window"
    assert seen.desk.alerts() == [], "by expiry, and only the second time in a row"


def test_a_window_is_named_by_its_session_when_it_catches_up(seen: Table) -> None:
    for day in (MONDAY, TUESDAY):
        seen.desk.cdn.publish(day)
    assert say(seen.tick()) == ("green", "DONE")
