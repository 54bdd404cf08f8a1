"""Facts of a configured tier as rows: read from what is held, again when it changed, and nobody else's."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from include.contract import Ask, CycleStatus, HostGroup, Mode
from include.sandbox.edgar_bulk import count_of_facts
from include.sources import edgar
from include.sources.edgar import tier
from tests.sources.answers import unit_of
from tests.sources.test_edgar_collecting import FIRST, Desk
from tests.sources.test_edgar_collecting import desk as desk


def test_a_tiers_facts_are_rows_and_follow_what_changed(desk: Desk) -> None:
    desk.switch("days", divisor=300, changed=0.4)
    desk.collect()
    members = desk.members()
    sizes = sorted(members, key=lambda name: -len(members[name]))[:6]
    ciks = [int(name[3:13]) for name in sizes]
    (stream,) = tier.streams(ciks) or ()
    stream = replace(stream, host_group=HostGroup("sec", timedelta(0)))
    asked = len(desk.running.requests())

    def held() -> dict[int, int]:
        rows = desk.place.sql("select cik, count(*) as n from filings.edgar_facts group by cik")
        return {row["cik"]: row["n"] for row in rows}

    def wanted() -> dict[int, int]:
        now = desk.members()
        return {int(name[3:13]): count_of_facts(now[name]) for name in sizes if name in now}

    assert desk.poll(stream).status is CycleStatus.SUCCESS
    assert held() == wanted()
    (row,) = desk.place.sql(
        "select * from filings.edgar_facts where cik = %s order by concept, measure, end_date limit 1", ciks[0]
    )
    (fact,) = [
        fact
        for fact in json.loads(members[sizes[0]])["facts"][row["taxonomy"]][row["concept"]]["units"][row["measure"]]
        if (fact["accn"], fact["end"]) == (row["accession"], str(row["end_date"]))
        and fact.get("start", fact["end"]) == str(row["start_date"])
    ]
    assert (row["value"], row["value_text"], row["fy"]) == (fact["val"], str(fact["val"]), fact["fy"])

    # The next day what changed of these companies is read again, and nobody is asked for it.
    desk.at(1)
    desk.poll(desk.archive)
    before = len(desk.running.requests())
    named = [name[3:13] for name in sizes]
    due = desk.place.sql("select subject from filings.edgar_due_facts where subject = any(%s)", named)
    assert due
    desk.poll(stream)
    assert held() == wanted()
    read = desk.place.sql("select unit from collect.fetches where stream = 'edgar.tier_facts'")
    assert len(read) == len(sizes) + len(due)
    assert (len(desk.running.requests()), asked <= before) == (before, True)
    tables = desk.place.tables(stream)
    desk.place.do(stream, Mode.REPLAY, FIRST.date(), FIRST.date() + timedelta(days=2))
    assert desk.place.tables(stream) == tables


def test_twice_given_facts_and_numbers_that_fit_nowhere_are_kept() -> None:
    row = {"end": "2025-12-31", "accn": "a", "fy": 2025, "fp": "FY", "form": "10-K", "filed": "2026-02-01"}
    rows = [row | {"val": value} for value in (1, 2, 10**40, None)] + [row | {"start": "2025-12-31", "val": 3}]
    document = {"cik": 7, "entityName": "x", "facts": {"us-gaap": {"A": {"label": "A", "units": {"USD": rows}}}}}
    (stream,) = tier.streams([7]) or ()
    (request,) = stream.plan(Ask(Mode.POLL, keys=("7",)))
    parsed = stream.parse(unit_of(request, json.dumps(document).encode()))
    found = [tuple(each) for each in parsed.batches[0].rows]
    assert sorted(each[8] for each in found if each[5]) == [0, 1, 2, 3]
    assert {each[9]: each[10] for each in found} == {"1": 1, "2": 2, str(10**40): None, None: None, "3": 3}
    # A day that is none is rejected by itself.
    rows[0]["end"] = "2025-02-30"
    again = stream.parse(unit_of(request, json.dumps(document).encode()))
    assert [each.reason for each in again.rejected] == ["end is no day"]


def test_whose_facts_are_rows_is_configured_and_nobodys_are_by_default() -> None:
    assert "edgar.tier_facts" not in {stream.name for stream in edgar.source({}).streams}
    (listed,) = tier.streams("nyse") or ()
    assert listed.name in {stream.name for stream in edgar.source({"facts_in_postgresql": "nyse"}).streams}
    assert listed.subjects is not None
    assert listed.subjects.flag == "is_nyse"
    for wrong in ({"facts_in_postgresql": "some"}, {"facts_in_postgresql": ["apple"]}, {"numbers": 1}, {"rows": True}):
        with pytest.raises(edgar.ChoiceUnfit, match=r"config/edgar\.yaml"):
            edgar.source(wrong)
