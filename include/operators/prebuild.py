"""The task that builds files over all companies, after a sync that went well.

Promises: nothing is built while a stream that feeds the files is still at work, nor after one of them failed; a build
that has no time left goes on where it ended. Never: nothing is sent from here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from include import settings
from include.operators.endings import Ended
from include.operators.publish import BUILD_SECONDS, PublishingTick, stopping
from include.operators.tick import Turn

# The DAG that builds, and the one whose streams feed it.
PREBUILD, SYNC = "prebuild", "dart_sync"
RELEASE = "dart/scan"
SYNC_WAIT, BUSY_WAIT = timedelta(minutes=5), timedelta(minutes=1)


class PrebuildOperator(PublishingTick):
    """Builds every file of a release over all companies."""

    kind = PREBUILD

    def __init__(self, *, streams: Sequence[str], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.streams = tuple(streams)

    def step(self, turn: Turn, context: Mapping[str, Any]) -> Ended:
        """Build, where the sync has ended well."""
        from include.operators import resolve
        from include.outputs import dart_scans, prebuild, releases
        from include.outputs.lease import PublishLeaseLost
        from include.outputs.parquet import PartUnreadable

        url = resolve.warehouse_url()
        unready = prebuild.unready(url, self.streams)
        for row in unready:
            if row["cycle_status"] == "FAILED":
                words = (
                    f"NOT BUILT – {row['stream']} failed: {row['failure_reason']}. What was built before stays; the "
                )
                return Ended("skipped", f"{words}next sync that goes well builds again.")
        if unready:
            return Ended("again", f"WAITING – {unready[0]['stream']} is still at work.", wait=SYNC_WAIT)
        release = releases.release(RELEASE)
        root = settings.load().outbox_root
        try:
            with stopping(turn) as stop:
                done = prebuild.prebuild(
                    url, release, dart_scans.scans, root, turn.owner, stop=stop, seconds=BUILD_SECONDS
                )
        except PublishLeaseLost as lost:
            return Ended("again", f"LEASE LOST – {lost} What was read is kept.")
        except PartUnreadable as error:
            return Ended("red", f"FAILED – {error} Readers keep the files before.")
        except OSError as error:
            return Ended("red", f"FAILED – the outbox cannot be written: {error}. Make room; nothing is lost.")
        data = {"queued": len(done.queued), "companies": done.companies, "left": done.left}
        if done.busy is not None:
            return Ended("again", f"WAITING – {done.busy}.", data, BUSY_WAIT)
        if done.left:
            return Ended("again", f"GOING ON – {done.companies} companies read, {done.left} to go.", data)
        words = f"{done.companies} of {done.of} companies read, {len(done.queued)} files new, "
        words += f"{len(done.unchanged)} as before"
        return Ended("green", f"BUILT – {words}." if done.queued else f"NOTHING – {words}.", data)
