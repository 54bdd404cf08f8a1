"""How a task ends: green, red, skipped or called again, with one sentence.

Promises: a red task that knows why is not tried again and logs its sentence without a stack trace; a killed task,
and one that the warehouse failed, is tried again. Never: nothing is decided about data here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, NoReturn

from airflow.sdk import RetryDecision, RetryPolicy
from airflow.sdk.exceptions import AirflowRescheduleException, AirflowSkipException

# A task that waits is not called again sooner than this, and looks again at least this often.
SHORTEST_WAIT, LONGEST_WAIT = timedelta(seconds=30), timedelta(hours=1)
# What a task note may hold, and what an XCom should.
NOTE_LENGTH, WORDS_LENGTH = 1_000, 1_500
STOPPED = "STOPPED – nothing was claimed; the next attempt goes on."


class Failed(SystemExit):
    """Ends a task red, for good; its text is what the operator reads.

    It leaves through `SystemExit` because Airflow logs every other failure with a stack trace, which says nothing
    to somebody who mistyped a date. `FOR_GOOD` keeps Airflow from trying the task again.
    """


class Interrupted(SystemExit):
    """Ends an attempt whose work was broken off from outside (the warehouse is away); Airflow tries again."""


class _ForGood(RetryPolicy):
    def evaluate(self, exception: BaseException, try_number: int, max_tries: int, context: Any = None) -> RetryDecision:
        """Fail where a task said why; leave every other failure to the task's retries."""
        return RetryDecision.fail() if isinstance(exception, Failed) else RetryDecision.default()


FOR_GOOD = _ForGood()
"""The retry policy of every task: what failed in words has failed; what was killed or interrupted is tried again."""


@dataclass(frozen=True)
class Ended:
    """What a task, or one tick of it, came to.

    `how`: `green`, `red`, `skipped`, or `again` after `wait`. `data` goes to the XCom: ids and counts only. `tells`
    says whether a green end may tell others what changed; a lane leaves it to the one that works longest.
    """

    how: Literal["green", "red", "skipped", "again"]
    words: str
    data: Mapping[str, Any] = field(default_factory=dict)
    wait: timedelta = SHORTEST_WAIT
    tells: bool = True

    def outcome(self) -> dict[str, Any]:
        """Return what goes to the XCom `outcome`."""
        return {**self.data, "how": self.how, "words": self.words[:WORDS_LENGTH]}

    def leave(self) -> None:
        """Return for a green end; otherwise raise what Airflow takes for the other ends.

        Raises:
            Failed: red.
            AirflowSkipException: skipped.
            AirflowRescheduleException: again, within the bounds of a wait.
        """
        if self.how == "green":
            return
        if self.how == "skipped":
            raise AirflowSkipException(self.words)
        if self.how == "again":
            wait = min(max(self.wait, SHORTEST_WAIT), LONGEST_WAIT)
            raise AirflowRescheduleException(datetime.now(UTC) + wait)
        raise Failed(self.words)


def refuse(words: str) -> NoReturn:
    """End the task red with a refusal in words."""
    raise Failed(f"REFUSED – {words}")
