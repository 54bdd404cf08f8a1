from __future__ import annotations

import subprocess
import sys
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest

from include.sandbox.finra_damage import KINDS, drifted
from include.sandbox.finra_files import DECIMALS_SINCE, EXEMPT_SINCE, HISTORY, ODD, PARTS, Edition, Market

DAY = date(2026, 9, 15)
MARKET = Market(seed=7, companies=300)
ROOT = Path(__file__).resolve().parents[2]


def table(body: bytes) -> tuple[list[str], list[list[str]], str]:
    assert body.endswith(b"\r\n")
    header, *rows, trailer = body.decode("ascii").split("\r\n")[:-1]
    return header.split("|"), [row.split("|") for row in rows], trailer


@pytest.mark.parametrize("prefix", sorted(HISTORY))
@pytest.mark.parametrize("day", [DAY, date(2026, 2, 20), date(2018, 9, 11), date(2011, 2, 28), date(2010, 3, 15)])
def test_every_file_has_its_header_one_line_a_symbol_and_their_number_as_trailer(prefix: str, day: date) -> None:
    if day < HISTORY[prefix]:
        return
    columns, rows, trailer = table(MARKET.file(day, prefix))
    with_exempt = ["Date", "Symbol", "ShortVolume", "ShortExemptVolume", "TotalVolume", "Market"]
    assert columns == [name for name in with_exempt if name != "ShortExemptVolume" or day >= EXEMPT_SINCE]
    assert trailer == str(len(rows))
    assert {len(row) for row in rows} <= {len(columns)}
    assert {row[0] for row in rows} <= {day.strftime("%Y%m%d")}
    symbols = [row[1] for row in rows]
    assert symbols == sorted(set(symbols))
    for row in rows:
        short, *exempt, total = (Decimal(text) for text in row[2:-1])
        assert 0 <= short <= total
        assert not exempt or 0 <= exempt[0] <= short


def test_an_empty_facility_is_a_file_of_65_bytes() -> None:
    empty = {MARKET.file(date(2026, 9, day), "FNRA") for day in range(8, 12)}
    assert b"Date|Symbol|ShortVolume|ShortExemptVolume|TotalVolume|Market\r\n0\r\n" in empty
    assert len(min(empty, key=len)) == 65


def test_volumes_have_six_decimals_only_since_the_day_that_brought_them_and_never_over_the_counter() -> None:
    def fractions(day: date, prefix: str) -> set[int]:
        _, rows, _ = table(MARKET.file(day, prefix))
        return {len(text.partition(".")[2]) for row in rows for text in row[2:-1]}

    assert fractions(date(2026, 2, 20), "CNMS") == {0}
    assert fractions(DECIMALS_SINCE, "CNMS") == {0, 6}
    assert fractions(DAY, "FORF") == {0}


def test_symbols_that_a_careless_reader_destroys_are_there() -> None:
    seen = {row[1] for day in (14, 15, 16) for row in table(MARKET.file(date(2026, 9, day), "CNMS"))[1]}
    assert seen >= {"NA", "NAN", "NULL", "TRUE", "BRK/B", "ABR", "ABRpD", "XYZ", "XYZw"}
    assert set(ODD) >= {"NA", "TRUE"}


@pytest.mark.parametrize("edition", [Edition(), Edition(2), Edition(1, frozenset({"AAPL", "NA"}))])
def test_the_consolidated_file_is_the_sum_of_the_facilities(edition: Edition) -> None:
    summed: dict[str, list[Decimal]] = {}
    letters: dict[str, set[str]] = {}
    for part in PARTS:
        for row in table(MARKET.file(DAY, part, edition))[1]:
            held = summed.setdefault(row[1], [Decimal(0)] * 3)
            summed[row[1]] = [one + Decimal(text) for one, text in zip(held, row[2:5], strict=True)]
            letters.setdefault(row[1], set()).add(row[5])
    rows = table(MARKET.file(DAY, "CNMS", edition))[1]
    assert {row[1]: [Decimal(text) for text in row[2:5]] for row in rows} == summed
    assert {row[1]: set(row[5].split(",")) for row in rows} == letters
    assert any(row[5] == "B,Q,N" for row in rows)


def test_a_revision_changes_some_rows_and_keeps_the_others() -> None:
    first, second = (table(MARKET.file(DAY, "CNMS", Edition(n)))[1] for n in (0, 1))
    changed = [one for one, other in zip(first, second, strict=True) if one != other]
    assert 0 < len(changed) < len(first) / 4


def test_a_withdrawn_row_is_gone_and_the_trailer_follows() -> None:
    symbols = MARKET.some_symbols(DAY, 2)
    _, rows, trailer = table(MARKET.file(DAY, "CNMS", Edition(1, symbols)))
    _, before, _ = table(MARKET.file(DAY, "CNMS"))
    assert len(symbols) == 2
    assert len(before) - len(rows) == 2 == int(table(MARKET.file(DAY, "CNMS"))[2]) - int(trailer)


def test_the_same_seed_gives_the_same_bytes_in_another_process() -> None:
    program = (
        "import hashlib, datetime; from include.sandbox.finra_files import Market;"
        "print(hashlib.sha256(Market(7, 300).file(datetime.date(2026, 9, 15), 'CNMS')).hexdigest())"
    )
    told = [
        subprocess.run(
            [sys.executable, "-c", program], cwd=ROOT, env={"PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2")
    ]
    assert told[0] == told[1]
    assert Market(8, 300).file(DAY, "CNMS") != MARKET.file(DAY, "CNMS")


def test_a_whole_market_of_twelve_thousand_symbols_can_be_made() -> None:
    _, rows, trailer = table(Market(7, 12_000).file(DAY, "CNMS"))
    assert 10_000 < len(rows) == int(trailer) <= 12_000


@pytest.mark.parametrize("how", sorted(KINDS))
@pytest.mark.parametrize("prefix", ["CNMS", "FNRA"])
def test_every_damage_changes_a_file_that_has_rows_and_breaks_on_none(how: str, prefix: str) -> None:
    days = [date(2026, 9, day) for day in (8, 9, 10, 11, 14, 15)]
    for day in days:
        good = MARKET.file(day, prefix)
        bad = KINDS[how](good)
        assert bad != good or not table(good)[1]


@pytest.mark.parametrize("drift", ["renamed", "missing", "extra"])
def test_a_drifted_file_has_another_header_and_still_its_trailer(drift: str) -> None:
    good = MARKET.file(DAY, "CNMS")
    bad = drifted(good, drift)
    assert bad.split(b"\r\n")[0] != good.split(b"\r\n")[0]
    assert bad.split(b"\r\n")[-2] == good.split(b"\r\n")[-2]
