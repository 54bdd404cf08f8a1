"""Measures reading DART's documents: the archive to plain text, and to chapters with tables, against BeautifulSoup.

    ./run bench -k documents
    python tests/benchmarks/documents.py [--megabytes 1] [--rounds 5]

Promises: all ways read the same archive, in CP949 with a byte in it each 170 kB that is none; every number that the
document holds is in what each of ours gives, or nothing is measured. BeautifulSoup is handed the decoded text, without
which it gives next to nothing. Never: a network or a file.
"""

from __future__ import annotations

import argparse
import gc
import io
import random
import re
import subprocess
import sys
import tempfile
import time
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from include.contract import Ask, Mode, Unit
from include.sources.dart import docs, documents, text
from tests.benchmarks.measuring import Cost, Judged, interleaved, judge, most_held, ratios, table

NUMBER = "20260331000001"
LARGE_MEGABYTES = 10
MOST_MEGABYTES = 200
_DIGITS = re.compile(r"[0-9][0-9,]*")


def document(size: int, seed: int = 7) -> tuple[bytes, Counter[str]]:
    """Return a report of about so many bytes, in CP949 with some that are none, and the numbers that stand in it."""
    chance, numbers = random.Random(seed), Counter[str]()

    def number() -> str:
        made = f"{chance.randrange(10**9):,}"
        numbers[made] += 1
        return made

    parts, length, chapter = ["<DOCUMENT><BODY>"], 0, 0
    while length < size:
        chapter += 1
        level = 1 if chapter % 5 == 1 else 2
        some = [f'<SECTION-{level} ACLASS="MANDATORY"><TITLE ATOC="Y" AASSOCNOTE="D-0-1">회사의 개요</TITLE>\n']
        for _ in range(6):
            words = f"당사는 {number()}원 A & B 합작 <당기> 참조, 매출이 증가하였습니다."
            some.append(f'<P USERMARK="F-BT14">{words} 그 밖의 사항은 주석을 참고하시기 바랍니다.</P>\n')
        some.append('<TABLE BORDER="1" WIDTH="600"><TBODY>\n')
        for row in range(40):
            cells = "".join(f'<TD WIDTH="100" ALIGN="RIGHT">{number()}</TD>' for _ in range(2))
            ending = "</TE></TR>\n" if row % 7 else "\n"
            some.append(
                f'<TR ACOPY="Y"><TD WIDTH="200">계정</TD>{cells}<TE ACODE="C_AMT" WIDTH="100">△{number()}{ending}'
            )
        some.append("</TBODY></TABLE>\n" + (f"</SECTION-{level}>\n" if level == 2 else ""))
        parts.append("".join(some))
        length += len(parts[-1].encode("cp949"))
    body = bytearray("".join([*parts, "</BODY></DOCUMENT>"]).encode("cp949"))
    for place in range(150_000, len(body) - 20_000, 170_000):
        place = body.index(b"</P>", place)
        body[place:place] = b"\xff"
    return bytes(body), numbers


def packed(body: bytes) -> bytes:
    """Return the archive of a document."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"{NUMBER}.xml", body)
    return made.getvalue()


def by_soup(archive: bytes) -> str:
    """Read an archive as most do."""
    from bs4 import BeautifulSoup

    warnings.simplefilter("ignore")
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        body = opened.read(opened.namelist()[0])
    return BeautifulSoup(body.decode("cp949", errors="replace"), "lxml").get_text(" ")


def rows_of(archive: bytes) -> int:
    """Read an archive to the rows that a worker would write, and return how many there are."""
    from tests.sources.answers import answer

    request = docs.of_key(f"00999991/{NUMBER}/005930/2026-03-31/annual-2025.12", Ask(Mode.POLL))
    assert request is not None
    parsed = docs.parse(Unit(request.unit, request.session_date, (answer(request, archive),)))
    return sum(1 for batch in parsed.batches for _ in batch.rows)


def peak() -> int:
    """Return the most megabytes that a process holds which reads a large document, Python and the source's modules too.

    Raises:
        ValueError: it holds more than it may.
    """
    with tempfile.NamedTemporaryFile(suffix=".zip") as file:
        file.write(packed(document(LARGE_MEGABYTES * 1_000_000)[0]))
        file.flush()
        command = [sys.executable, str(Path(__file__).resolve()), "--read", file.name]
        rows, held = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    megabytes = round(float(held))
    read = f"a document of {LARGE_MEGABYTES} MB to {int(rows):,} rows"
    print(f"{read} holds {megabytes} MB at most (limit {MOST_MEGABYTES})")
    if megabytes > MOST_MEGABYTES:
        raise ValueError(f"a large document took {megabytes} MB, and {MOST_MEGABYTES} are the most")
    return megabytes


def measure(megabytes: float = 1.0, rounds: int = 5) -> list[Judged]:
    """Check that no number is lost, measure, print, and return what is judged.

    Raises:
        ValueError: a number is lost or made up, or a large document takes more memory than it may.
    """
    body, numbers = document(int(megabytes * 1_000_000))
    archive = packed(body)
    for name, found in (
        ("plain text", documents.plain_text(archive, NUMBER).text),
        ("chapters", documents.read(archive, NUMBER).text),
    ):
        if Counter(_DIGITS.findall(found)) != numbers:
            raise ValueError(f"{name}: the numbers are not those of the document")

    def cost(way: Callable[[], object]) -> Callable[[], Cost]:
        def run() -> Cost:
            # What the way before has left behind is not this one's.
            gc.collect()
            client, wall = time.process_time(), time.perf_counter()
            way()
            return Cost(time.process_time() - client, 0.0, time.perf_counter() - wall)

        return run

    taken = interleaved(
        {
            "BeautifulSoup with lxml, decoded first": cost(lambda: by_soup(archive)),
            "to plain text": cost(lambda: documents.plain_text(archive, NUMBER)),
            "to chapters with tables": cost(lambda: documents.read(archive, NUMBER)),
            "limit: unpacking and decoding alone": cost(lambda: text.decode(documents.members_of(archive)[0].content)),
        },
        rounds,
    )
    print(table(taken, int(megabytes * 1_000), "kB"))
    soup = taken["BeautifulSoup with lxml, decoded first"]
    judged = [
        Judged("a document to plain text", tuple(ratios(soup, taken["to plain text"])), floor=20, aim=40),
        Judged("a document to chapters with tables", tuple(ratios(soup, taken["to chapters with tables"])), aim=10),
    ]
    for each in judged:
        print(judge(each))
    peak()
    return judged


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Measure the reading of DART's documents.")
    parser.add_argument("--megabytes", type=float, default=1.0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--read", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.read:
        print(rows_of(given.read.read_bytes()), most_held())
    else:
        measure(given.megabytes, given.rounds)
