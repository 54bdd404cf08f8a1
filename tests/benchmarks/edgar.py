"""Measures a bulk file of companies' facts made into a parquet file for each company.

    ./run bench -k edgar
    python tests/benchmarks/edgar.py [--companies 900] [--rounds 3] [--dartlab ~/dartlab/bin/python]

Promises: every way reads the same archive from disk and is run in turn; ours is checked fact by fact against the naive
reading before anything is measured. `naive` is what people write: `zipfile`, `json.loads`, a list of dictionaries,
pandas, `to_parquet`. `floor` is inflating and parsing alone, with the fastest parser here, of which nothing is made.
DuckDB reads the unpacked documents by itself, with one thread, and writes one file of all. dartlab's own converter
takes part where an interpreter is named that has it, here or in `DARTLAB_PYTHON`. An ordinary day converts the members
whose checksum differs. The scan over all companies is made of the files of all. Then the same days go through
the engine, from a stand-in of the SEC, in processes of their own: what is transferred, what each process holds at most,
and how much two of them are faster than one.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[2])

import msgspec
import pandas as pd
import pyarrow.parquet as pq

from include.engine import zips
from include.sandbox.edgar_bulk import Bulk
from include.sources.edgar import documents, finance_file, scan_file
from tests.benchmarks.measuring import Cost, Judged, interleaved, judge, most_held, ratios, table


def _cost(work: Callable[[], object]) -> Cost:
    cpu, wall = time.process_time(), time.perf_counter()
    work()
    return Cost(time.process_time() - cpu, 0.0, time.perf_counter() - wall)


def naive(archive: Path, folder: Path) -> None:
    """Write a file a company with pandas."""
    with zipfile.ZipFile(archive) as opened:
        for name in opened.namelist():
            document = json.loads(opened.read(name))
            rows = [
                {
                    "cik": document["cik"], "entityName": document["entityName"], "taxonomy": taxonomy,
                    "concept": concept, "label": about["label"], "unit": unit, **row,
                }
                for taxonomy, concepts in (document.get("facts") or {}).items()
                for concept, about in concepts.items()
                for unit, found in about["units"].items()
                for row in found
            ]  # fmt: skip
            frame = pd.DataFrame(rows)
            if "val" in frame:
                # A column of both whole numbers beyond 64 bits and others is none for parquet.
                frame["val"] = frame["val"].astype("float64")
            frame["cik"] = frame["cik"].astype(str) if "cik" in frame else ""
            frame.to_parquet(folder / f"{name}.parquet")


def ours(archive: Path, folder: Path, known: dict[str, tuple[int, int]] | None = None) -> int:
    """Convert every member, or those that differ from what is known; returns how many."""
    converted = 0
    with archive.open("rb") as file:
        _, entries = zips.directory_of(file, archive.stat().st_size)
        for entry in entries:
            if known is not None and known.get(entry.name) == (entry.crc32, entry.size):
                continue
            body = b"".join(zips.unpacked(entry, file))
            with (folder / f"{entry.name}.ours.parquet").open("wb") as target:
                finance_file.convert(body, int(entry.name[3:13]), target)
            converted += 1
    return converted


def floor(archive: Path) -> None:
    """Inflate and parse, and make nothing of it."""
    decoder = msgspec.json.Decoder(documents._Document)
    with archive.open("rb") as file:
        _, entries = zips.directory_of(file, archive.stat().st_size)
        for entry in entries:
            decoder.decode(b"".join(zips.unpacked(entry, file)))


def duck(folder: Path, target: Path) -> None:
    """One file of all facts by DuckDB, from documents that are unpacked already."""
    import duckdb  # type: ignore[import-not-found]  # only where the peers are installed

    with duckdb.connect() as connection:
        connection.execute("set threads = 1")
        connection.execute(
            f"""copy (
                with d as (select cik, entityName, unnest(map_entries(facts)) as t from read_json('{folder}/*.json',
                    columns = {{cik: 'VARCHAR', entityName: 'VARCHAR', facts: 'MAP(VARCHAR, MAP(VARCHAR, STRUCT("label"
                    VARCHAR, units MAP(VARCHAR, STRUCT("start" DATE, "end" DATE, val VARCHAR, accn VARCHAR, fy INTEGER,
                    fp VARCHAR, form VARCHAR, filed DATE, frame VARCHAR)[]))))'}}, maximum_object_size = 200000000)),
                c as (select cik, entityName, t.key as taxonomy, unnest(map_entries(t.value)) as c from d),
                u as (select cik, entityName, taxonomy, c.key as concept, c.value."label" as label,
                             unnest(map_entries(c.value.units)) as u from c)
                select cik, entityName, taxonomy, concept, label, u.key as unit, unnest(u.value, recursive := true)
                  from u
            ) to '{target}' (format parquet)"""
        )


def dartlab(python: str, archive: Path, folder: Path) -> Cost:
    """dartlab's converter, in a process of its own, which also says what it took."""
    script = Path(__file__).with_name("edgar_dartlab.py")
    said = subprocess.run(  # the interpreter that whoever measures has named
        # Without the script's own folder, whose modules have names of the standard library's.
        [python, "-P", str(script), str(archive), str(folder)],
        check=True,
        capture_output=True,
        text=True,
    )
    cpu, wall = said.stdout.split()[-2:]
    return Cost(float(cpu), 0.0, float(wall))


def scan(files: Sequence[Path], folder: Path) -> None:
    """Scan all companies' files, in batches as the engine does."""
    pieces = []
    for first in range(0, len(files), 200):
        pieces.append(folder / f"{first}.piece")
        with pieces[-1].open("wb") as target:
            scan_file.piece((partial(path.open, "rb") for path in files[first : first + 200]), target)
    with (folder / "scan.parquet").open("wb") as target:
        scan_file.join((path.open("rb") for path in pieces), target)


def check_equal(archive: Path) -> int:
    """Compare every fact of ours with the plainest reading; returns how many there are."""
    count = 0
    with zipfile.ZipFile(archive) as opened:
        for name in opened.namelist():
            body = opened.read(name)
            target = io.BytesIO()
            finance_file.convert(body, int(name[3:13]), target)
            got = pq.read_table(target).select(["taxonomy", "concept", "unit", "accn", "val"]).to_pylist()
            wanted = [
                (taxonomy, concept, unit, row["accn"], row["val"])
                for taxonomy, concepts in (json.loads(body, parse_float=str, parse_int=str).get("facts") or {}).items()
                for concept, about in concepts.items()
                for unit, found in about["units"].items()
                for row in found
            ]
            if sorted(tuple(each.values()) for each in got) != sorted(wanted):
                raise AssertionError(f"{name} differs")
            count += len(wanted)
    return count


def measure(companies: int, divisor: int, rounds: int, python_of_dartlab: str = "") -> list[str]:
    """Run every way in turn and return the lines to print."""
    bulk = Bulk(companies=companies, facts_divisor=divisor)
    with tempfile.TemporaryDirectory(prefix="daybook-bench-") as home:
        folder = Path(home)
        first, second = folder / "first.zip", folder / "second.zip"
        first.write_bytes(bulk.archive(0))
        second.write_bytes(bulk.archive(1))
        facts = check_equal(first)
        with first.open("rb") as file:
            _, entries = zips.directory_of(file, first.stat().st_size)
            known = {entry.name: (entry.crc32, entry.size) for entry in entries}
        with second.open("rb") as file:
            _, entries = zips.directory_of(file, second.stat().st_size)
            changed = [entry for entry in entries if known.get(entry.name) != (entry.crc32, entry.size)]
        share = sum(entry.packed for entry in changed) / second.stat().st_size
        kinds: dict[str, Callable[[], Cost]] = {
            "floor: inflate and parse": lambda: _cost(lambda: floor(first)),
            "ours, all": lambda: _cost(lambda: ours(first, folder)),
            "ours, the next day": lambda: _cost(lambda: ours(second, folder, known)),
            "naive: json and pandas": lambda: _cost(lambda: naive(first, folder)),
        }
        ours(first, folder)
        files = sorted(folder.glob("*.ours.parquet"))
        kinds["scan of all files"] = lambda: _cost(lambda: scan(files, folder))
        try:
            import duckdb  # noqa: F401
        except ImportError:
            pass
        else:
            unpacked = folder / "unpacked"
            unpacked.mkdir()
            with zipfile.ZipFile(first) as opened:
                opened.extractall(unpacked)
            kinds["DuckDB, unpacked already"] = lambda: _cost(lambda: duck(unpacked, folder / "all.parquet"))
        if python_of_dartlab:
            kinds["dartlab's converter"] = lambda: dartlab(python_of_dartlab, first, folder / "dartlab")
        taken = interleaved(kinds, rounds)
        full, least = taken["ours, all"], taken["floor: inflate and parse"]
        lines = [
            table(taken, facts, "fact"),
            f"{companies} companies, {facts:,} facts; the next day changes {len(changed)} of them, {share:.1%} of the "
            f"bytes. Most memory of this process, all ways together: "
            f"{most_held():.0f} MB",
            judge(Judged("facts: ours / floor", tuple(ratios(full, least)), floor=4.0, aim=2.0, less=True)),
            judge(
                Judged("facts: naive / ours", tuple(ratios(taken["naive: json and pandas"], full)), floor=2.2, aim=4.2)
            ),
            judge(
                Judged("facts: all / the next day", tuple(ratios(full, taken["ours, the next day"])), floor=0.6 / share)
            ),
        ]
        each = sorted(cost.cpu for cost in taken["scan of all files"])[rounds // 2] / companies * 1_000
        lines.append(f"scan: {each:.1f} ms of CPU a company, {each * 19:.0f} s for 19,000")
        if "DuckDB, unpacked already" in taken:
            lines.append(
                judge(Judged("facts: DuckDB / ours", tuple(ratios(taken["DuckDB, unpacked already"], full)), floor=0.8))
            )
        if python_of_dartlab:
            theirs = tuple(ratios(taken["dartlab's converter"], full))
            lines.append(judge(Judged("facts: dartlab / ours", theirs, floor=3.0, aim=6.0)))
        return lines


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--companies", type=int, default=900)
    parser.add_argument("--divisor", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--dartlab", default=os.environ.get("DARTLAB_PYTHON", ""))
    options = parser.parse_args()
    print("\n".join(measure(options.companies, options.divisor, options.rounds, options.dartlab)))
