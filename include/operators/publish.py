"""The tasks that publish: files are built from the tables, then pushed to the Hub.

Promises: both work in ticks and go on where they ended; what waits is in the outbox and lost by no failure; one that
fails is an incident until one of its kind ends well. Never: more than one push at a time (a pool for order, a lease in
the database for certainty), and no token in a message.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from include import settings
from include.contract import Table
from include.operators.endings import Ended
from include.operators.resolve import ConnectionUnfit
from include.operators.tick import Tick, Turn
from include.settings import SettingError

if TYPE_CHECKING:
    from include.outputs.publisher import Published

log = logging.getLogger(__name__)

BUILD = "build"
BUSY_WAIT = timedelta(minutes=1)
# How long a build may go on beginning new parts, in seconds.
BUILD_SECONDS = 480.0


class PublishingTick(Tick):
    """A tick whose failure somebody is told of, whatever it is: `unpublished/…` is open until one like it ends well."""

    kind = ""

    def work(self, context: Mapping[str, Any], turn: Turn) -> Ended:
        """Work one tick, and write down whether it failed."""
        import psycopg

        try:
            ended = self.step(turn, context)
        except psycopg.OperationalError:
            # The warehouse is away, and there is nowhere to write to; the task is tried again.
            raise
        except (ConnectionUnfit, SettingError) as unfit:
            ended = Ended("red", f"REFUSED – {unfit}")
        except Exception as error:
            reason = (str(error) or type(error).__name__).partition("\n")[0][:300]
            self._tell(Ended("red", f"FAILED – nobody foresaw this ({type(error).__name__}): {reason}"), turn.owner)
            raise
        self._tell(ended, turn.owner)
        return ended

    def step(self, turn: Turn, context: Mapping[str, Any]) -> Ended:
        """Do what the task is for."""
        raise NotImplementedError

    def _tell(self, ended: Ended, owner: str) -> None:
        import psycopg

        from include.engine import incidents
        from include.engine.db import transaction
        from include.operators import resolve

        if ended.how not in ("red", "green"):
            return
        try:
            url = resolve.warehouse_url()
        except (ConnectionUnfit, SettingError):
            return
        # What a build left undone makes the push red as well, and is told once.
        key = f"unpublished/{ended.data.get('of', self.kind)}"
        text = f"{ended.words} ({owner}). Nothing is lost: it waits, and readers have what was sent before."
        try:
            with transaction(url, application="daybook publish", statement_timeout=15) as connection:
                if ended.how == "green":
                    incidents.close(connection, [key], f"{owner} ended well: {ended.words[:300]}")
                else:
                    incidents.open(connection, key=key, severity="error", text=text)
        except psycopg.Error as error:
            # A task ends as its work did, whether that can be told or not; its note says the same.
            log.warning("That this ended %s could not be written down: %s", ended.how, error)


class BuildOperator(PublishingTick):
    """Builds the files of every part of a table that changed."""

    kind = BUILD

    def __init__(self, *, tables: Sequence[Table], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.tables = tuple(tables)

    def step(self, turn: Turn, context: Mapping[str, Any]) -> Ended:
        """Build what there is time for."""
        from include.operators import resolve
        from include.outputs import adopt, outbox, releases

        url, root, files_root = resolve.warehouse_url(), settings.load().outbox_root, settings.load().files_root
        queued, left, failed, unchanged = list[str](), 0, list[str](), 0
        with stopping(turn) as stop:
            for release, table in [*releases.fed_by(self.tables), *((release, None) for release in releases.made())]:
                seconds = BUILD_SECONDS if turn.has_time(BUILD_SECONDS) else 0
                rest: dict[str, Any] = {"stop": stop, "seconds": seconds}
                try:
                    if table is None:
                        built = adopt.adopt(url, release, files_root, root, turn.owner, **rest)
                    else:
                        built = outbox.build(url, release, table, root, turn.owner, **rest)
                except OSError as error:
                    return Ended("red", f"FAILED – the outbox cannot be written: {error}. Make room; nothing is lost.")
                queued += [f"{release.name} {part}" for part in built.queued]
                failed += [f"{release.name} {part}: {reason}" for part, reason in built.failed]
                left += len(built.left)
                unchanged += len(built.unchanged) + len(built.overtaken)
        return _built(queued, left, failed, unchanged)


def _built(queued: list[str], left: int, failed: list[str], unchanged: int) -> Ended:
    text = f"{_files(len(queued))} built" + (f" ({', '.join(queued[:5])})" if queued else "")
    text += f", {unchanged} unchanged" if unchanged else ""
    data = {"queued": len(queued), "left": left, "failed": len(failed), "unchanged": unchanged}
    if left:
        return Ended("again", f"GOING ON – {text}, {left} parts to go.", data)
    if failed:
        return Ended(
            "red", f"FAILED – {text}; not {failed[0].rstrip('.')}. It stays marked, and the next run builds it.", data
        )
    return Ended("green", f"BUILT – {text}." if queued or unchanged else "NOTHING – no part of a table changed.", data)


class PushOperator(PublishingTick):
    """Pushes what waits in the outbox to the Hub."""

    kind = "push"

    def step(self, turn: Turn, context: Mapping[str, Any]) -> Ended:
        """Push what there is time for."""
        from include.operators import resolve
        from include.outputs import publisher
        from include.outputs.lease import PublishLeaseLost

        # The Hub's client logs every address, and those of uploads are signed: they open what they name.
        logging.getLogger("httpx2").setLevel(logging.WARNING)
        url, root = resolve.warehouse_url(), settings.load().outbox_root
        hub = resolve.hub()
        try:
            with stopping(turn) as stop:
                done = publisher.publish(url, hub, root, turn.owner, stop=stop)
        except publisher.PublicationRefused as refused:
            return Ended("red", f"REFUSED – {refused}")
        except PublishLeaseLost as lost:
            return Ended("again", f"LEASE LOST – {lost} It is looked at before anything is sent again.")
        built: Mapping[str, Any] = context["ti"].xcom_pull(task_ids=BUILD, key="outcome") or {}
        return _pushed(url, done, str(built["words"]) if built.get("how") == "red" else "")


def _pushed(url: str, done: Published, build_failure: str) -> Ended:
    """Say how the push ends; a build that failed makes the run red once everything else is sent."""
    commits = ", ".join(f"commit {commit.oid[:10]} ({commit.release})" for commit in done.commits)
    data = {
        "files": done.files,
        "commits": [commit.oid for commit in done.commits],
        "waiting": done.waiting,
        "refused": len(done.refused),
        "deferred": [release for release, _ in done.deferred],
    }
    text = f"{_files(done.files)}, {commits}" if done.commits else "nothing was sent"
    if done.restored:
        path, what = done.restored[0]
        text += (
            f"; {_files(len(done.restored))} that others had deleted or changed there are sent again ({path}: {what})"
        )
    if done.busy is not None:
        return Ended("again", f"WAITING – {done.busy}; {_files(done.waiting)} to go.", data, BUSY_WAIT)
    if done.put_off_until is not None:
        wait = done.put_off_until - _now(url)
        return Ended("again", f"PUT OFF – {text}; {_files(done.waiting)} wait: {done.put_off_reason}.", data, wait)
    if done.failed:
        release, reason = done.failed[0]
        return Ended("red", f"FAILED – {text}; {release}: {reason}. {_files(done.waiting)} wait in the outbox.", data)
    if done.deferred and not done.stopped:
        release, reason = done.deferred[0]
        words = f"PARTIAL – {text}; {_files(done.waiting)} of large releases wait ({release}: {reason})."
        return Ended("green", words, data)
    if done.waiting or done.stopped:
        return Ended("again", f"GOING ON – {text}; {_files(done.waiting)} to go.", data)
    if build_failure:
        return Ended("red", f"{build_failure} Sent: {text}.", {**data, "of": BUILD})
    if done.refused:
        path, reason = done.refused[0]
        return Ended("green", f"PARTIAL – {text}; not {path}: {reason}", data)
    return Ended("green", f"DONE – {text}." if done.commits else "NOTHING – no file waits for publication.", data)


def _now(url: str) -> Any:
    from include.engine import windows
    from include.engine.db import connect

    connection = connect(url, application="daybook publish", autocommit=True)
    try:
        return windows.now(connection)
    finally:
        connection.close()


def _files(number: int) -> str:
    return f"{number} file" if number == 1 else f"{number} files"


@contextmanager
def stopping(turn: Turn) -> Iterator[threading.Event]:
    """Give an event that is set once the task must stop, for code that waits on one.

    A thread sets it: a signal handler that did would wait for a lock that the thread it interrupted may hold.
    """
    stop, over = threading.Event(), threading.Event()

    def watch() -> None:
        while not over.wait(0.2):
            if turn.stop():
                stop.set()
                return

    thread = threading.Thread(target=watch, name="stop flag", daemon=True)
    thread.start()
    try:
        yield stop
    finally:
        over.set()
        thread.join()
