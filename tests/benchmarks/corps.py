"""Measures the memory that reading DART's list of all companies takes, against reading it as one document.

    ./run bench -k corps
    python tests/benchmarks/corps.py [--companies 119313]

Promises: each way is a process of its own, of which the most memory that it ever held is taken, the interpreter with
it; both come to the same rows. Never: a network or a database.
"""

from __future__ import annotations

import argparse
import io
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from include.contract import Ask, Mode
from include.sandbox.dart import corps_document
from include.sandbox.dart_filings import Company
from include.sources.dart import corps
from tests.benchmarks.measuring import Judged, judge, most_held
from tests.sources.answers import unit_of

COMPANIES = 119_313
MOST_MB = 200.0


def archive(companies: int) -> bytes:
    """An archive of so many companies, one in thirty of them listed."""
    some = (
        Company(
            f"{100_000 + n:08}",
            f"{'가나다라마바사아자차카타파하'[n % 14]}나전자{n}홀딩스",
            f"Company Number {n} Holdings & Co., Ltd.",
            f"{n // 30:06}" if n % 30 == 0 else " ",
            "E",
            date(2017, 6, 30) + timedelta(days=n % 3_300),
        )
        for n in range(companies)
    )
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as made, made.open("CORPCODE.xml", "w") as member:
        for piece in corps_document(some):
            member.write(piece)
    return packed.getvalue()


def as_stream(body: bytes) -> int:
    """Read it as we do; how many rows came."""
    (request,) = corps.plan(Ask(Mode.POLL, pending=(corps.KEY,)))
    return sum(1 for batch in corps.parse(unit_of(request, body)).batches for _ in batch.rows)


def as_document(body: bytes) -> int:
    """Read it as most do: the whole document, then a list of its companies."""
    from xml.etree import ElementTree

    with zipfile.ZipFile(io.BytesIO(body)) as made:
        root = ElementTree.fromstring(made.read(made.namelist()[0]))
    return len([{child.tag: (child.text or "").strip() for child in each} for each in root.iter("list")])


WAYS: dict[str, Callable[[bytes], int]] = {"as a stream": as_stream, "as a document": as_document}


def measured(way: str, file: Path, companies: int) -> float:
    """The most memory in MB that a process held that read the file in a way.

    Raises:
        ValueError: it came to another number of companies.
    """
    command = [sys.executable, str(Path(__file__)), "--way", way, "--file", str(file)]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    if int(said[0]) != companies:
        raise ValueError(f"{way}: {said[0]} companies were read, not {companies}")
    return float(said[1])


def measure(companies: int = COMPANIES) -> Judged:
    """Measure both ways, print them, and return ours as judged."""
    with tempfile.TemporaryDirectory(prefix="daybook-bench-") as home:
        file = Path(home) / "CORPCODE.zip"
        file.write_bytes(archive(companies))
        print(f"{companies:,} companies in {file.stat().st_size / 1e6:.1f} MB packed")
        taken = {way: tuple(measured(way, file, companies) for _ in range(3)) for way in WAYS}
    for way, values in taken.items():
        print(f"{way:20} {max(values):8.0f} MB at most")
    ours = Judged(
        "reading DART's list of companies: memory", taken["as a stream"], "MB", MOST_MB, MOST_MB / 2, less=True
    )
    print(judge(ours))
    return ours


def main() -> None:
    """Measure, or read one file in one way and say how many companies and megabytes it took."""
    parser = argparse.ArgumentParser(description="Measure the memory of reading DART's list of companies.")
    parser.add_argument("--companies", type=int, default=COMPANIES)
    parser.add_argument("--way", choices=list(WAYS))
    parser.add_argument("--file", type=Path)
    given = parser.parse_args()
    if given.way and given.file:
        count = WAYS[given.way](given.file.read_bytes())
        print(count, most_held())
        return
    measure(given.companies)


if __name__ == "__main__":
    main()
