"""Companies' documents read to the last digit: generated ones, recorded ones, odd ones and broken ones."""

from __future__ import annotations

import io
import json
from collections import Counter
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow.parquet as pq
import pytest

from include.contract import ParseError
from include.sandbox.edgar_bulk import Bulk
from include.sandbox.edgar_companies import Company
from include.sources.edgar import documents, finance_file
from tests.sources.samples import SAMPLES


def plainly(body: bytes, cik: int) -> Counter[tuple[Any, ...]]:
    """An independent, straightforward reading."""
    document = json.loads(body, parse_float=str, parse_int=str)
    found: Counter[tuple[Any, ...]] = Counter()
    for taxonomy, concepts in (document.get("facts") or {}).items():
        for concept, about in concepts.items():
            for unit, rows in about["units"].items():
                for row in rows:
                    year = None if row["fy"] is None else int(row["fy"])
                    of_row = (row["accn"], year, row["fp"], row["form"], row["filed"], row.get("frame"))
                    of_concept = (cik, document["entityName"], taxonomy, concept, about["label"], unit)
                    found[(*of_concept, row.get("start"), row["end"], row["val"], *of_row)] += 1
    return found


def made(body: bytes, cik: int) -> tuple[bytes, documents.Facts]:
    target = io.BytesIO()
    facts = finance_file.convert(body, cik, target)
    return target.getvalue(), facts


def rows_of(file: bytes) -> list[tuple[Any, ...]]:
    read = pq.read_table(io.BytesIO(file))
    assert read.schema.equals(finance_file.schema())
    columns = [
        [None if day is None else day.isoformat() for day in column.to_pylist()] if name in ("start", "end", "filed")
        else column.to_pylist()
        for name, column in zip(read.schema.names, read.columns, strict=True)
    ]  # fmt: skip
    return list(zip(*columns, strict=True))


def shuffled(body: bytes, seed: int) -> bytes:
    """The same document with everything that has no order in another one."""
    dice = Random(seed)

    def mixed(value: Any) -> Any:
        if isinstance(value, dict):
            pairs = [(name, mixed(each)) for name, each in value.items()]
            dice.shuffle(pairs)
            return dict(pairs)
        if isinstance(value, list):
            items = [mixed(each) for each in value]
            dice.shuffle(items)
            return items
        return value

    return json.dumps(mixed(json.loads(body))).encode()


def test_every_fact_of_a_generated_market_is_in_the_files_digit_by_digit_and_in_one_order() -> None:
    for company in Bulk(companies=50, facts_divisor=50).on(1):
        body = company.document()
        file, facts = made(body, company.cik)
        rows = rows_of(file)
        assert Counter(rows) == plainly(body, company.cik)
        assert rows == list(finance_file.columns(facts))
        assert not facts.rejected
        assert rows == list(finance_file.columns(finance_file.read(body, company.cik, loosely=True)))


def test_the_same_facts_give_the_same_bytes_whatever_their_order_in_the_document() -> None:
    for number in (3, 7, 11, 13):
        company = Company(7, number, 1, 40)
        body = company.document()
        first, _ = made(body, company.cik)
        assert made(body, company.cik)[0] == first
        other = body.replace(b'"val"', b'"val" ') if number == 3 else body
        assert made(other, company.cik)[0] == first
        # JSON's own reader would write these otherwise.
        if not any(mark in body for mark in (b"-0,", b"E-7", b"E+3")):
            assert made(shuffled(body, number), company.cik)[0] == first


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="the recorded samples are not beside this checkout")
@pytest.mark.parametrize("name", ["companyfacts_CIK0001997711_ifrs.json", "companyfacts_CIK0001835632_cut.json"])
def test_recorded_documents_are_read_fact_by_fact(name: str) -> None:
    body, cik = (SAMPLES / "sec" / name).read_bytes(), int(name.split("CIK")[1][:10])
    (line,) = [each for each in (SAMPLES / "MANIFEST.tsv").read_text().splitlines() if each.startswith(f"sec/{name}\t")]
    reading = json.loads(line.split("\t")[-1])
    file, facts = made(body, cik)
    rows = rows_of(file)
    assert Counter(rows) == plainly(body, cik)
    assert len(rows) == reading["datapoints"]
    assert sum(row[-1] is not None for row in rows) == reading["with_frame"]
    assert sorted({row[5] for row in rows}) == reading["units"]
    assert sorted({row[12] for row in rows}) == reading["forms"]
    for named, unit, count, first, last in reading["examples"]:
        taxonomy, _, concept = named.partition(":")
        of = [row for row in rows if row[2:4] == (taxonomy, concept) and row[5] == unit]
        assert len(of) == count
        wanted = (first["start"], first["end"], first["val"], first["accn"])
        assert wanted in [(row[6], row[7], Decimal(row[8]), row[9]) for row in of]
        assert any(Decimal(row[8]) == Decimal(str(last)) for row in of)
    assert (facts.rejected, facts.unknown) == ([], [])


ROW = (
    '{"end":"2025-12-31","val":%s,"accn":"0000000001-26-000001","fy":2025,"fp":"FY","form":"10-K",'
    '"filed":"2026-02-01"%s}'
)


def of(rows: str, cik: str = "1", more: str = "") -> bytes:
    return (
        f'{{"cik":{cik},"entityName":"A"{more},"facts":{{"us-gaap":{{"Assets":{{"label":null,"description":null,'
        f'"units":{{"USD":[{rows}]}}}}}}}}}}'
    ).encode()


@pytest.mark.parametrize(
    "digits",
    ["0", "-0", "1", "-1", "0.1", "1.10", "1E3", "1.5e-7", "9" * 40, f"0.{'1' * 40}", "353514000000", "-1.0E+22"],
)
def test_a_number_keeps_its_digits_whatever_they_are(digits: str) -> None:
    ((*_, value, _, _, _, _, _, _),) = rows_of(made(of(ROW % (digits, "")), 1)[0])
    assert value == digits


@pytest.mark.parametrize(
    ("body", "count"),
    [
        (b'{"cik":1,"entityName":"A"}', 0),
        (b'{"cik":1,"entityName":"","facts":{}}', 0),
        (b'{"cik":"0000000001","entityName":null,"facts":null}', 0),
        (of(""), 0),
        (of(ROW % ("1", "")), 1),
        (of(ROW % ("null", "")), 1),
        (of(ROW % ("1", ',"start":null')), 1),
        (of(ROW % ("1", "") + "," + ROW % ("1", "")), 2),
        (of(ROW % ("2", ',"frame":"CY2025"') + "," + ROW % ("1", "")), 2),
        (of((ROW % ("1", "")).replace("2025,", '"2025",')), 1),
        (of((ROW % ("1", "")).replace("2025,", "null,")), 1),
        (of(ROW % ("1", "")).replace(b"us-gaap", b"who-knows"), 1),
        (of((ROW % ("1", "")).replace("2025-12-31", "1011-12-31")), 1),
        (of((ROW % ("1", "")).replace('"FY"', '"H1"')), 1),
        (of((ROW % ("1", "")).replace("10-K", "99-Z") + "," + ROW % ("2", "")), 2),
        (of(ROW % ("1", "")) + b"\n", 1),
    ],
)
def test_what_is_odd_is_read_like_anything_else(body: bytes, count: int) -> None:
    file, facts = made(body, 1)
    assert len(rows_of(file)) == count
    assert facts.rejected == []


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (ROW % ('"1"', ""), "val is no number"),
        (ROW % ("true", ""), "val is no number"),
        ((ROW % ("1", "")).replace("2025-12-31", "2025-13-31"), "end is no day"),
        ((ROW % ("1", "")).replace('"end":"2025-12-31",', ""), "end is no day"),
        ((ROW % ("1", "")).replace('"accn":"0000000001-26-000001",', ""), "accn is missing"),
        ((ROW % ("1", "")).replace('"0000000001-26-000001"', '""'), "accn is missing"),
        ((ROW % ("1", "")).replace('"0000000001-26-000001"', "[]"), "accn is no text"),
        ((ROW % ("1", "")).replace('"val"', '"value"'), "val is missing"),
        ((ROW % ("1", "")).replace("2026-02-01", ""), "filed is no day"),
        ((ROW % ("1", "")).replace("2025,", "99999999999,"), "fy is no year"),
    ],
)
def test_a_row_that_is_no_fact_is_put_aside_with_the_reason_and_the_others_stay(bad: str, why: str) -> None:
    file, facts = made(of(bad + "," + ROW % ("7", "")), 1)
    assert [row[8] for row in rows_of(file)] == ["7"]
    assert [(each.reason, each.position) for each in facts.rejected] == [(why, "us-gaap:Assets USD 1")]


def test_a_concept_whose_rows_stand_under_another_name_is_put_aside() -> None:
    file, facts = made(of(ROW % ("1", "")).replace(b'"units"', b'"measures"'), 1)
    assert rows_of(file) == []
    assert [(each.reason, each.position) for each in facts.rejected] == [
        ("it has no units, but 'measures'", "us-gaap:Assets")
    ]


def test_fields_that_nobody_knows_are_told_and_lose_nothing() -> None:
    file, facts = made(of(ROW % ("7", ',"dim":"x"'), more=',"sic":"1"'), 1)
    assert len(rows_of(file)) == 1
    assert facts.unknown == ["sic", "row.dim"]


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"", "no document"),
        (b"<html></html>", "no document"),
        (of(ROW % ("1", ""))[:-5], "no document"),
        (b"[]", "no document"),
        (b'{"entityName":"A","facts":{}}', "which company"),
        (of("", cik="2"), "named as that of 0000000001"),
        (of("", cik="null"), "named as that of"),
        (b'{"cik":1,"facts":[]}', "taxonomy"),
        (of(ROW % ("1", "")).replace(b'"facts"', b'"data"'), "may be them under another name"),
    ],
)
def test_what_is_no_document_of_the_company_is_refused_in_words(body: bytes, why: str) -> None:
    with pytest.raises(ParseError, match=why):
        made(body, 1)


def test_a_day_changes_a_share_of_the_companies_adds_some_and_takes_some() -> None:
    bulk = Bulk(companies=200, facts_divisor=200, gone=0.02)
    first, second = dict(bulk.members(0)), dict(bulk.members(1))
    shared = first.keys() & second.keys()
    changed = sum(first[name] != second[name] for name in shared)
    assert 0.02 < changed / len(shared) < 0.12
    assert second.keys() - first.keys()
    assert first.keys() - second.keys()
    assert bulk.archive(1) == Bulk(companies=200, facts_divisor=200, gone=0.02).archive(1)
