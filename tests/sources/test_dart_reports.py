"""DART's statements and report items, read from recorded answers and from rows of our own."""

from __future__ import annotations

import json
from collections import Counter
from decimal import Decimal

import pytest

from include import registry
from include.contract import Ask, Mode, ParseError, Stream
from include.settings import ROOT
from include.sources.dart import reports, statements
from tests.sources.answers import unit_of

SAMPLES = ROOT.parent / "shared" / "upstream" / "samples" / "dart"


def sample(name: str) -> bytes:
    file = SAMPLES / name
    if not file.exists():
        pytest.skip("the recorded answers (../shared/upstream/samples) are not here")
    return file.read_bytes()


# --- statements


def test_the_recorded_statement_is_read_to_the_won() -> None:
    rows = json.loads(sample("fnlttSinglAcntAll_CSA_2025_CFS.json"))
    found = statements.read(json.dumps({"status": "000", "list": rows}).encode(), "CFS", [])
    assert len(found) == 259
    assert Counter(each.texts["sj_div"] for each in found) == {"BS": 43, "CF": 99, "CIS": 26, "SCE": 91}
    assert found[0].texts["account_id"] == "ifrs-full_Assets"
    assert found[0].amounts["thstrm_amount"] == Decimal(30205395740)
    assert sum(each.amounts["thstrm_amount"] is None for each in found) == 1
    assert sum((each.amounts["thstrm_amount"] or 0) < 0 for each in found) == 41
    assert {each.texts["currency"] for each in found} == {"KRW"}
    assert {each.basis for each in found} == {"CFS"}
    assert not any(each.odd or each.extra for each in found)
    assert statements.NO_STANDARD_ACCOUNT in {each.texts["account_id"] for each in found}


def test_amounts_with_commas_are_read_as_those_without() -> None:
    (row,) = statements.read(sample("fnlttMultiAcnt_samsung_2023.json"), "CFS", [])
    assert row.amounts["thstrm_amount"] == Decimal(195_936_557_000_000)
    assert row.extra["fs_div"] == "CFS"


@pytest.mark.parametrize(
    ("given", "number", "is_odd"),
    [
        ("", None, False), ("-", None, False), (None, None, False), (" 1,234 ", 1234, False), ("해당없음", None, True),
        ("-1234567890123456789", -1234567890123456789, False), ("(1,234)", -1234, False), ("△1,234", -1234, False),
        ("0", 0, False), ("12.5", Decimal("12.5"), False), ("1e5", None, True), ("--1", None, True),
        ("12,34", None, True), ("1,5", None, True), ("1,234,567.5", Decimal("1234567.5"), False),
        ("12 34", None, True), ("1000 2000", None, True), ("- 1,234", -1234, False), ("( △ 1,234 )", -1234, False),
    ],
)  # fmt: skip
def test_an_amount_is_exact_or_none_and_never_a_guess(given: str | None, number: object, is_odd: bool) -> None:
    assert statements.amount(given) == (None if number is None else Decimal(str(number)), is_odd)


def test_statements_without_the_amount_of_the_period_are_refused() -> None:
    row = dict.fromkeys(("rcept_no", "reprt_code", "bsns_year", "corp_code", "sj_div", "account_nm"), "1")
    of_period = {**row, "thstrm_amount": ""}
    assert len(statements.read(json.dumps({"status": "000", "list": [row, of_period]}).encode(), "CFS", [])) == 2
    renamed = {**row, "thstrm_amt": "5"}
    with pytest.raises(ParseError, match="no row has thstrm_amount"):
        statements.read(json.dumps({"status": "000", "list": [renamed, row]}).encode(), "CFS", [])


def test_no_consolidated_statements_are_none_and_not_the_separate_ones() -> None:
    assert statements.read(sample("error_013.json"), "CFS", []) == []
    with pytest.raises(ParseError):
        statements.read(b'{"status": "000"}', "CFS", [])


# --- key items


def test_the_endpoints_are_the_official_ones() -> None:
    assert len(reports.ENDPOINTS) == 30
    assert {"newCaplScritsNrdmpBlce", "cndlCaplScritsNrdmpBlce", "stockTotqySttus"} <= set(reports.ENDPOINTS)
    assert "사모" in reports.ENDPOINTS["prvsrpCptalUseDtls"][0]
    assert "공모" in reports.ENDPOINTS["pssrpCptalUseDtls"][0]
    assert {"mtrpt_cptal_use_plan_useprps", "pay_amount"} <= set(reports.fields_of("prvsrpCptalUseDtls"))
    with pytest.raises(KeyError):
        reports.fields_of("newCapScritsNrdmpBlce")


def test_rows_are_kept_in_order_as_given_and_what_is_new_beside_them() -> None:
    rows = [
        {"rcept_no": "20260331000001", "se": "주당액면가액(원)", "thstrm": "100", "new_field": "x"},
        {"rcept_no": "20260331000001", "se": "합계", "thstrm": " - "},
    ]
    found = reports.read("alotMatter", json.dumps({"status": "000", "list": rows}).encode(), [])
    assert [(row.position, row.values["se"], row.values["thstrm"]) for row in found] == [
        (1, "주당액면가액(원)", "100"), (2, "합계", "-"),
    ]  # fmt: skip
    assert found[0].extra == {"new_field": "x"}
    grouped = {"status": "000", "group": [{"title": "보수", "list": [{"rcept_no": "20260331000001", "nm": "가"}]}]}
    (row,) = reports.read("indvdlByPayV2", json.dumps(grouped).encode(), [])
    assert (row.group, row.values["nm"]) == ("보수", "가")
    assert reports.read("alotMatter", sample("error_013.json"), []) == []
    with pytest.raises(ParseError, match="alotMatter"):
        reports.read("alotMatter", json.dumps(grouped).encode(), [])
    # Rows of another item say nothing of this one.
    with pytest.raises(ParseError, match="something else"):
        reports.read("pssrpCptalUseDtls", json.dumps({"status": "000", "list": rows}).encode(), [])


# --- rows of the tables


def rows_of(key: str, body: bytes) -> list[dict[str, object]]:
    """The rows of the second table that a stream gives of an answer, by column."""
    stream: Stream = registry.stream("dart.finance" if "FS/" in key else "dart.report")
    (request,) = stream.plan(Ask(Mode.POLL, pending=(key,)))
    _, batch = stream.parse(unit_of(request, body)).batches
    return [dict(zip(batch.table.column_names, row, strict=False)) for row in batch.rows]


def test_the_recorded_statement_becomes_rows_with_the_basis_that_was_asked_for() -> None:
    rows = json.loads(sample("fnlttSinglAcntAll_CSA_2025_CFS.json"))
    body = json.dumps({"status": "000", "message": "", "list": rows}).encode()
    found = rows_of("00406037/2025.11011/CFS/20260324000035", body)
    assert len(found) == 259
    assert {row["fs_div"] for row in found} == {"CFS"}
    for given, row in zip(rows, found, strict=True):
        for name in statements.AMOUNTS:
            text = given.get(name, "")
            assert row[name] == (Decimal(text) if text else None)
    assert sum(1 for row in found if row["amounts_as_given"]) == 0


def test_an_amount_keeps_the_text_that_is_not_simply_its_number() -> None:
    body = (ROOT / "tests/fixtures/dart/statements.json").read_bytes()
    first, second, third = rows_of("00999991/2026.11013/OFS/20260515000777", body)
    assert (first["thstrm_amount"], first["amounts_as_given"]) == (Decimal(1234567), {"thstrm_amount": "1,234,567"})
    assert second["thstrm_amount"] == Decimal("-1234567890123456789")
    assert (second["frmtrm_q_amount"], second["amounts_as_given"]) == (None, {"frmtrm_q_amount": "-"})
    assert (third["thstrm_amount"], third["odd_amounts"]) == (Decimal("12.50"), "thstrm_add_amount")


def test_rows_of_an_item_in_groups_keep_their_group_and_order() -> None:
    body = (ROOT / "tests/fixtures/dart/items_in_groups.json").read_bytes()
    found = rows_of("00999991/2026.11013/indvdlByPayV2/20260515000777", body)
    assert [(row["number"], row["item_group"], row["item_values"]["nm"]) for row in found] == [  # type: ignore[index]
        (1, "이사", "가나다"), (2, "감사", "라마바"),
    ]  # fmt: skip
