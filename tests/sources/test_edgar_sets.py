"""Statement data sets: found by quarter, read line by line, a file for each member; built anew, read again."""

from __future__ import annotations

import csv
import io
import zipfile
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.parquet as pq
import pytest

from include.contract import CycleStatus, HostGroup, Mode, Outcome, ParseError
from include.outputs import checks, releases
from include.sandbox import edgar as stand_in
from include.sandbox.exchange import World
from include.sources.edgar import set_columns, set_files, set_streams
from tests.fixtures_sandbox import Start
from tests.sources import samples
from tests.sources.answers import Bytes
from tests.sources.places import Place
from tests.sources.test_edgar_collecting import Desk

# 13:30 in Seoul on 20 October 2026: the set of the third quarter is not there, that of the second is.
FIRST = datetime(2026, 10, 20, 4, 30, tzinfo=UTC)
FREE = HostGroup("sec", timedelta(0))


def made(name: str, text: str | bytes) -> tuple[list[dict[str, Any]], Any]:
    target = io.BytesIO()
    body = Bytes(text if isinstance(text, bytes) else text.encode())
    said = set_files.convert(name, body, target)
    again = io.BytesIO()
    set_files.convert(name, body, again)
    assert again.getvalue() == target.getvalue()
    return pq.read_table(target).to_pylist(), said


def plainly(name: str, text: str) -> list[dict[str, Any]]:
    """The rows of a member, read in the most straightforward way."""
    kinds = {column: kind for column, kind, _ in set_columns.LAYOUTS[name].columns}
    as_typed: dict[str, Callable[[str], Any]] = {
        "int32": int,
        "int64": int,
        "day": lambda v: date(int(v[:4]), int(v[4:6]), int(v[6:])),
        "flag": lambda v: bool(int(v)),
        "decimal": Decimal,
        "mmdd": str,
        "text": str,
    }
    rows = []
    for row in csv.DictReader(io.StringIO(text), delimiter="\t", quoting=csv.QUOTE_NONE):
        rows.append(
            {
                column: None if not row.get(column) else as_typed[kind](row[column])
                for column, kind in kinds.items()
                if kind != "instant"
            }
        )
    return rows


def same(name: str, text: str) -> int:
    rows, said = made(name, text)
    right = plainly(name, text)
    assert [{column: row[column] for column in right[0]} for row in rows] == right
    assert (said.rows, list(said.rejected), tuple(said.unknown_columns)) == (len(right), [], ())
    assert [row["file_line"] for row in rows] == list(range(2, len(rows) + 2))
    key = set_columns.LAYOUTS[name].key
    counts = Counter(tuple(row[each] for each in key) for row in rows)
    flagged = [row["flags"] for row in rows]
    assert flagged == ["duplicate_key" if counts[tuple(row[each] for each in key)] > 1 else None for row in rows]
    return sum(flag is not None for flag in flagged)


def test_a_real_set_is_read_to_its_last_column() -> None:
    file = samples.SAMPLES / "sec" / "fsds_2010q2_excerpt.zip"
    if not file.exists():
        pytest.skip("the samples are not here")
    with zipfile.ZipFile(file) as archive:
        for name, rows in (("sub", 12), ("pre", 1370), ("tag", 626), ("num", 3193)):
            text = archive.read(f"{name}.txt").decode()
            same(name, text)
            assert text.count("\n") == rows + 1
        (ford, *_), _ = made("sub", archive.read("sub.txt"))
    # The file has New York's time.
    assert (ford["accepted"], ford["fye"], ford["ein"]) == (
        datetime(2010, 5, 7, 17, 14, tzinfo=UTC),
        "1231",
        "380549190",
    )


def test_generated_sets_are_read_as_they_are_whatever_their_layout() -> None:
    shared = 0
    for old in (False, True):
        sets = stand_in.Sets(7, 400, has_segments=not old)
        for name, text in sets.members(2026, 2).items():
            if name != "readme.htm":
                shared += same(name.removesuffix(".txt"), text)
    assert shared > 1
    # The first set has headers alone.
    rows, said = made("sub", stand_in.Sets(7, 400).members(2009, 1)["sub.txt"])
    assert (rows, said.rows) == ([], 0)


def test_lines_that_do_not_fit_are_rejected_alone_and_odd_ones_are_kept_and_flagged() -> None:
    head = "adsh\treport\tline\tstmt\tinpth\trfile\ttag\tversion\tplabel\tnegating\tnews\n"
    good = 'a\t2\t{}\tBS\t0\tH\tAssets\tus-gaap/2026\tCaf\xe9 "x\t1\t{}\n'
    text = head + good.format(1, "new") + good.format("x", "") + "a\t2\n" + good.format(2, "") + good.format(2, "")
    rows, said = made("pre", text.encode("cp1252"))
    assert [(row["file_line"], row["plabel"], row["flags"], row["extra"]) for row in rows] == [
        (2, 'Café "x', "not_utf8", '{"news": "new"}'),
        (5, 'Café "x', "duplicate_key,not_utf8", None),
        (6, 'Café "x', "duplicate_key,not_utf8", None),
    ]
    assert [(each.position, each.reason) for each in said.rejected] == [
        ("line 3", "line is no whole number"),
        ("line 4", "it has 2 fields and not 11"),
    ]
    assert said.unknown_columns == ("news",)
    head = "\t".join(column for column, _, _ in set_columns.NUM.columns) + "\n"
    values = ("1.50", "-2E+3", "", "1_000", " 1", "\uff11", "9" * 70 + ".5", "1E99999999999999999999", "0.00001", "NaN")
    rows, said = made("num", head + "".join(f"a\tCash\tus-gaap/2026\t20260630\t0\tUSD\t\t\t{v}\t\n" for v in values))
    assert [row["value"] for row in rows] == [Decimal("1.5"), Decimal(-2000), None]
    assert [each.position for each in said.rejected] == [f"line {n}" for n in range(5, 12)]
    for wrong in ("", "<html>", head.replace("report", "rapport"), head + "a\n" * 201):
        with pytest.raises(ParseError):
            made("pre", wrong)


def test_a_file_without_a_column_that_all_have_is_refused_and_no_count_is_below_nothing() -> None:
    for name, layout in set_columns.LAYOUTS.items():
        columns = [column for column, _, _ in layout.columns]
        for lacking in (*layout.key, *layout.needed):
            head = "\t".join("other" if column == lacking else column for column in columns) + "\n"
            if lacking in ("segments", "coreg"):
                assert made(name, head)[0] == []
                continue
            with pytest.raises(ParseError, match=rf"lacks {lacking}$"):
                made(name, head)
    head = "\t".join(column for column, _, _ in set_columns.NUM.columns) + "\n"
    rows, said = made("num", head + "a\tCash\tus-gaap/2026\t20260630\t-1\tUSD\t\t\t7\t\n")
    assert (rows, [each.reason for each in said.rejected]) == ([], ["qtrs is no whole number"])


def test_a_block_read_at_once_gives_what_its_lines_give_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    odd = (
        "",
        " ",
        '"',
        "'",
        "\\",
        "\\t",
        "NA",
        "null",
        "#",
        "a\0b",
        "\u2028",
        "\x85",
        "é",
        "\ufeff",
        "0",
        "007",
        "x",
        "-1",
    )
    usual = {"int32": "12", "int64": "1750", "day": "20260331", "flag": "1", "instant": "2026-06-04 17:00:00.0"}
    usual |= {"mmdd": "1231", "decimal": "-1.50"}
    monkeypatch.setattr(set_files, "BLOCK", 1_000)
    for name, layout in set_columns.LAYOUTS.items():
        dice = Random(name)
        lines = ["\t".join((*(column for column, _, _ in layout.columns), "news"))]
        for number in range(600):
            fields = [usual.get(kind, f"{column} {number}") for column, kind, _ in layout.columns] + [""]
            if dice.random() < 0.4:
                fields[dice.choice([at for at, (_, kind, _) in enumerate(layout.columns) if kind == "text"])] = (
                    dice.choice(odd)
                )
            if dice.random() < 0.02:
                fields[dice.randrange(len(fields))] = dice.choice(odd)
            line = "\t".join(fields) + ("\r" if dice.random() < 0.02 else "")
            lines += [line, *([line] if dice.random() < 0.01 else []), *([""] if dice.random() < 0.01 else [])]
        text = "\n".join(lines)
        at_once = made(name, text)
        with monkeypatch.context() as line_by_line:
            line_by_line.setattr(set_files._Reading, "at_once", refuse)
            assert made(name, text) == at_once
        assert len(at_once[0]) > 400
        assert at_once[1].rejected


def refuse(self: set_files._Reading, number: int, block: bytes) -> None:
    raise set_files._Unusual


@pytest.fixture
def desk(place: Callable[[], Place], sandbox: Start, tmp_path: Path) -> Desk:
    here = place()
    here.at(FIRST)
    running = sandbox(clock=here.now, companies=40)
    here.sandbox_url = running.url
    sets, files = (replace(stream, host_group=FREE) for stream in set_streams.streams(numbers=False))
    return Desk(here, running, stand_in.Edgar(World(tmp_path, companies=40)), sets, files)


def members(desk: Desk) -> dict[str, int]:
    return {path: rows for path, (_, rows) in desk.made().items()}


def test_a_new_quarter_is_found_a_rebuilt_one_read_again_and_an_older_one_had_by_asking(desk: Desk) -> None:
    assert [verdict.outcome for verdict in desk.collect()] == [Outcome.SUCCESS] * 2
    quarters = ("2025Q4", "2026Q1", "2026Q2")
    assert set(desk.made()) == {f"edgar/meta/{m}/{q}.parquet" for m in ("sub", "pre", "tag") for q in quarters}
    sets = desk.beside.sets()
    assert members(desk)["edgar/meta/sub/2026Q2.parquet"] == sets.members(2026, 2)["sub.txt"].count("\n") - 1
    for path in ("edgar/meta/tag/2026Q1.parquet", "edgar/meta/sub/2026Q2.parquet"):
        # What is read from the bytes is what the gate of publication asks for.
        facts = checks.read(desk.files / path, by_session=False)
        assert (facts.duplicates, facts.disorder) == (0, 0)
        assert releases.release("edgar/meta").part_at(path).path == path
    before = desk.made()

    # Nothing new the next day: four small questions. A day later the third quarter is there.
    asked = len(desk.running.requests())
    desk.place.at(FIRST + timedelta(days=1))
    assert [verdict.outcome for verdict in desk.collect()] == [Outcome.SUCCESS] * 2
    assert desk.made().keys() - before.keys() == {f"edgar/meta/{m}/2026Q3.parquet" for m in ("sub", "pre", "tag")}
    statuses = [each["status"] for each in desk.running.requests()[asked:]]
    assert statuses.count(304) == 3

    # All of them are built anew, and what differs is made again.
    before = desk.made()
    desk.switch("rebuild")
    desk.place.at(FIRST + timedelta(days=2))
    assert [verdict.outcome for verdict in desk.collect()] == [Outcome.SUCCESS] * 2
    after = desk.made()
    assert before.keys() == after.keys()
    assert {path for path in after if after[path] != before[path]} >= {"edgar/meta/sub/2026Q2.parquet"}

    # An older quarter by name, and all files once more without asking anybody.
    desk.place.do(desk.archive, Mode.BACKFILL, date(2025, 4, 1), date(2025, 6, 30))
    desk.place.at(FIRST + timedelta(days=3))
    assert desk.poll(desk.facts).outcome is Outcome.SUCCESS
    assert members(desk)["edgar/meta/pre/2025Q2.parquet"] > 0
    held, asked = desk.made(), len(desk.running.requests())
    for path in desk.files.rglob("*.parquet"):
        path.unlink()
    desk.place.do(desk.facts, Mode.REPLAY, FIRST.date(), FIRST.date())
    assert (desk.made(), len(desk.running.requests())) == (held, asked)


def doubts(desk: Desk) -> list[str]:
    return [row["key"] for row in desk.place.sql("select key, says from filings.edgar_doubts")]


def test_what_is_no_set_takes_nothing_away_and_numbers_come_where_they_are_wanted(desk: Desk) -> None:
    desk.running.fault(match={"path_contains": "2026q2.zip"}, html_block_page=True, n=1)
    blocked = desk.poll(desk.archive)
    assert blocked.status in (CycleStatus.FAILED, CycleStatus.PENDING), blocked.words
    assert desk.poll(desk.facts).words.startswith("NOTHING DUE")
    assert doubts(desk) == [], "nothing is missed before the first was there"
    sets, files = (replace(stream, host_group=FREE) for stream in set_streams.streams(numbers=True))
    with_numbers = replace(desk, archive=sets, facts=files)
    desk.place.at(FIRST + timedelta(days=1))
    assert [verdict.outcome for verdict in with_numbers.collect()] == [Outcome.SUCCESS] * 2
    text = desk.beside.sets().members(2026, 2)["num.txt"]
    assert members(desk)["edgar/meta/num/2026Q2.parquet"] == text.count("\n") - 1
    assert members(desk)["edgar/meta/sub/2026Q3.parquet"] > 0
    # A quarter that does not come is told 45 days after its end.
    found = []
    for day in (date(2027, 2, 14), date(2027, 2, 15)):
        desk.place.at(datetime(day.year, day.month, day.day, 17, tzinfo=UTC))
        found.append(doubts(desk))
    assert found == [[], ["2026Q4"]]


def test_a_column_that_nobody_knows_is_told_once(desk: Desk) -> None:
    assert desk.facts.making is not None
    make = desk.facts.making.make
    told = replace(
        desk.facts.making, make=lambda *given: replace(make(*given), unknown_columns=("tomorrow", "yesterday"))
    )
    desk.poll(desk.archive)
    assert desk.poll(replace(desk.facts, making=told)).outcome is Outcome.SUCCESS
    alerts = desk.place.sql(
        "select severity, text from ops.alerts where alert_key like 'unknown-columns/edgar.statements/%%'"
    )
    assert [(row["severity"], "tomorrow, yesterday" in row["text"]) for row in alerts] == [("warning", True)]
