"""A publisher as a process of its own, to be killed: short leases, scaled limits, until nothing waits any more."""

from __future__ import annotations

import json
import sys
import time
from functools import partial
from pathlib import Path

from include.outputs import lease, publisher
from include.outputs.hub import Hub
from include.outputs.lease import claim, renewed
from tests.outputs.publishing import REPOSITORY, TOKEN
from tests.outputs.storm import Limits, Worker

TTL, EVERY, MARGIN = 6.0, 1.0, 1.0


def main() -> None:
    """Publish: warehouse, address of the Hub, outbox, name and limits come as arguments."""
    url, endpoint, root, name, limits = sys.argv[1:]
    lease.MARGIN_SECONDS = MARGIN
    publisher.claim = partial(claim, ttl=TTL)  # type: ignore[assignment]
    publisher.renewed = partial(renewed, every=EVERY)  # type: ignore[assignment]
    pace = Limits(**json.loads(limits)).pace
    Worker(url, Hub(endpoint, TOKEN, REPOSITORY), Path(root), name, pace, time.monotonic() + 900).work()


if __name__ == "__main__":
    main()
