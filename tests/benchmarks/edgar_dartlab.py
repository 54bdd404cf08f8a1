"""Converts a bulk file with dartlab's converter, and prints what it took: seconds of the processor and of the clock.

    ~/dartlab/bin/python -P tests/benchmarks/edgar_dartlab.py ARCHIVE FOLDER

dartlab needs a Python and libraries that this project does not have, so it runs by an interpreter of its own. Promises:
neither imports nor the first company, which warms it up, are counted. Never: anything of ours is imported.
"""

from __future__ import annotations

import sys
import time
import zipfile
from pathlib import Path


def main(archive: Path, folder: Path) -> None:
    """Convert all companies, and print the two times."""
    from dartlab.gather.edgar.bulk import convertBulkToParquets  # type: ignore[import-not-found]

    with zipfile.ZipFile(archive) as opened:
        first = opened.namelist()[0].removeprefix("CIK").removesuffix(".json")
    convertBulkToParquets(archive, outDir=folder, onlyCiks={first}, progress=False)
    cpu, wall = time.process_time(), time.perf_counter()
    done = convertBulkToParquets(archive, outDir=folder, progress=False, force=True)
    spent = time.process_time() - cpu, time.perf_counter() - wall
    if done["failed"] or not done["converted"]:
        raise SystemExit(f"dartlab could not convert all companies: {done}")
    print(*spent)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
