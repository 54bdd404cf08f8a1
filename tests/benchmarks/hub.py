"""Measures how many requests the Hub sees for each file: ours in commits of 100, against one upload for each file.

    ./run bench -k hub
    python tests/benchmarks/hub.py [--files 2500] [--single 50]

Promises: the stand-in counts, the real client sends; both ways in the same process against the same stand-in, over Xet.
Never: a time is judged.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from huggingface_hub import HfApi

from include.outputs.hub import Hub
from include.outputs.publisher import publish
from include.sandbox.app import build
from include.sandbox.exchange import World
from include.sandbox.server import serve
from tests.benchmarks.measuring import warehouse
from tests.fixtures_sandbox import MovableClock, RunningSandbox
from tests.outputs import market
from tests.outputs.publishing import REPOSITORY, TOKEN, many

MOST_PER_FILE, LEAST_TIMES = 0.04, 75.0


@dataclass(frozen=True)
class Asked:
    """Requests that the Hub saw for each file: in commits of a hundred, and with one upload each."""

    files: int
    ours: float
    single: float
    kinds: dict[str, int]

    @property
    def times(self) -> float:
        """How many times fewer ours are."""
        return self.single / self.ours


def measure(files: int = 2_500, single: int = 50, *, url: str | None = None, folder: Path | None = None) -> Asked:
    """Publish so many files, then upload some of them one by one; give what the stand-in counted."""
    if url is None or folder is None:
        with warehouse() as (_, made), tempfile.TemporaryDirectory(prefix="daybook-hub-") as place:
            return measure(files, single, url=made, folder=Path(place))
    root, state = folder / "outbox", folder / "sandbox"
    with serve(build(World(state, 7, 60, hub_limits=False), clock=MovableClock()).app) as server:
        running = RunningSandbox(server.url, None, MovableClock(), state)  # type: ignore[arg-type]
        many(url, root, files)
        done = publish(url, Hub(server.url, TOKEN, REPOSITORY), str(root), "a measure")
        assert done.files == files, f"only {done.files} of {files} files were published"
        kinds = _asked(running)
        api = HfApi(endpoint=server.url, token=TOKEN)
        api.create_repo("me/single", repo_type="dataset")
        running.control("DELETE", "log")
        for file in market.files(url)[:single]:
            api.upload_file(
                path_or_fileobj=str(root / f"{file['sha256'].hex()}.parquet"),
                path_in_repo=file["path"],
                repo_id="me/single",
                repo_type="dataset",
            )
        alone = _asked(running)
    return Asked(files, sum(kinds.values()) / files, sum(alone.values()) / single, dict(kinds))


def _asked(running: RunningSandbox) -> Counter[str]:
    found = running.requests(host="huggingface.co")
    return Counter(one["kind"] for one in found if not one["kind"].startswith("cas_"))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=2_500)
    parser.add_argument("--single", type=int, default=50)
    options = parser.parse_args()
    asked = measure(options.files, options.single)
    print(
        f"{asked.files} files: {asked.ours:.4f} requests a file (at most {MOST_PER_FILE}), one by one "
        f"{asked.single:.2f}: {asked.times:.0f} times fewer (at least {LEAST_TIMES:.0f}); {asked.kinds}"
    )


if __name__ == "__main__":
    main()
