"""XBRL instances: facts with what they refer to, whatever the order, the prefixes and the character set."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from include.contract import ParseError
from include.sources.sec import xbrl
from include.sources.sec.xbrl import Fact, Instance
from tests.sources.samples import SAMPLES, listed

ROOT = (
    '<xbrl xmlns="http://www.xbrl.org/2003/instance" xmlns:us-gaap="http://fasb.org/us-gaap/2026" '
    'xmlns:own="http://example.test/20260630" xmlns:iso4217="http://www.xbrl.org/2003/iso4217" '
    'xmlns:xbrldi="http://xbrl.org/2006/xbrldi" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" '
    'xmlns:link="http://www.xbrl.org/2003/linkbase" xmlns:xlink="http://www.w3.org/1999/xlink" '
    'xmlns:dei="http://xbrl.sec.gov/dei/2026">'
)
ENTITY = '<entity><identifier scheme="http://www.sec.gov/CIK">0000765432</identifier>{}</entity>'
USD = '<unit id="usd"><measure>iso4217:USD</measure></unit>'


def context(name: str, period: str, segment: str = "") -> str:
    return f'<context id="{name}">{ENTITY.format(segment)}<period>{period}</period></context>'


INSTANT = context("now", "<instant>2026-06-30</instant>")
QUARTER = context("quarter", "<startDate>2026-04-01</startDate><endDate>2026-06-30</endDate>")


def pieces(content: bytes, size: int = 1 << 18) -> Iterator[bytes]:
    for at in range(0, len(content), size):
        yield content[at : at + size]


def read(*parts: str, charset: str = "utf-8") -> tuple[list[Fact], Instance]:
    instance = Instance(pieces("".join((ROOT, *parts, "</xbrl>")).encode()), charset)
    return list(instance.facts()), instance


def fact(text: str, *, name: str = "us-gaap:Assets", at: str = "now", unit: str = "usd", more: str = "") -> str:
    unit = f' unitRef="{unit}"' if unit else ""
    return f'<{name} contextRef="{at}"{unit} decimals="-3"{more}>{text}</{name}>'


def test_a_fact_carries_its_period_its_unit_and_its_digits() -> None:
    facts, instance = read(
        INSTANT, QUARTER, USD, fact("12345678901234567890.12"), fact("-7", at="quarter", more=' id="f1"')
    )
    assert facts[0].context.kind == "instant"
    assert (facts[0].context.start, facts[0].context.end) == (None, date(2026, 6, 30))
    assert (facts[0].name, facts[0].namespace) == ("us-gaap:Assets", "http://fasb.org/us-gaap/2026")
    assert (facts[0].text, facts[0].number) == ("12345678901234567890.12", Decimal("12345678901234567890.12"))
    assert (facts[0].unit, facts[0].decimals) == ("USD", "-3")
    assert (facts[1].context.start, facts[1].context.end) == (date(2026, 4, 1), date(2026, 6, 30))
    assert (facts[1].position, facts[1].fact_id, facts[1].number) == (2, "f1", Decimal(-7))
    assert facts[0].context.entity == "0000765432"
    assert instance.rejected == []


def test_the_order_of_parts_does_not_matter() -> None:
    first, _ = read(INSTANT, USD, fact("1"), fact("2"))
    last, _ = read(fact("1"), fact("2"), USD, INSTANT)
    assert last == first


@pytest.mark.parametrize(
    ("unit", "told"),
    [
        ("<measure>iso4217:USD</measure>", "USD"),
        ("<measure>xbrli:shares</measure>", "shares"),
        ("<measure>shares</measure>", "shares"),
        ("<measure>own:Vendor</measure>", "own:Vendor"),
        ("<measure>own:A</measure><measure>iso4217:EUR</measure>", "own:A*EUR"),
        (
            "<divide><unitNumerator><measure> iso4217:USD </measure></unitNumerator>"
            "<unitDenominator><measure>xbrli:shares</measure></unitDenominator></divide>",
            "USD/shares",
        ),
    ],
)
def test_a_unit_is_what_its_measures_say_whatever_it_is_called(unit: str, told: str) -> None:
    prefixed = ROOT.replace("<xbrl ", '<xbrl xmlns:xbrli="http://www.xbrl.org/2003/instance" ')
    content = f'{prefixed}{INSTANT}<unit id="UNIT_7">{unit}</unit>{fact("1", unit="UNIT_7")}</xbrl>'
    (found,) = Instance(pieces(content.encode()), "utf-8").facts()
    assert (found.unit_id, found.unit) == ("UNIT_7", told)


def test_dimensions_name_the_member_of_each_axis() -> None:
    explicit = '<xbrldi:explicitMember dimension="us-gaap:ClassAxis"> own:OneMember </xbrldi:explicitMember>'
    typed = '<xbrldi:typedMember dimension="own:DateAxis"><own:When>2026-03-30</own:When></xbrldi:typedMember>'
    nothing = '<xbrldi:typedMember dimension="own:NoAxis"><own:When xsi:nil="true"/></xbrldi:typedMember>'
    at = "<instant>2026-06-30</instant>"
    scenario = f'<context id="s">{ENTITY.format("")}<period>{at}</period><scenario>{explicit}</scenario></context>'
    facts, _ = read(
        context("now", at, f"<segment>{explicit}{typed}{nothing}</segment>"),
        scenario,
        USD,
        fact("1"),
        fact("2", at="s"),
    )
    assert facts[0].context.dimensions == {
        "us-gaap:ClassAxis": "own:OneMember",
        "own:DateAxis": {"element": "When", "value": "2026-03-30"},
        "own:NoAxis": {"element": "When", "value": None},
    }
    assert facts[1].context.dimensions == {"us-gaap:ClassAxis": "own:OneMember"}


@pytest.mark.parametrize(
    ("period", "kind", "start", "end"),
    [
        ("<forever/>", "forever", None, None),
        ("<instant>2026-06-30T00:00:00</instant>", "instant", None, date(2026, 6, 29)),
        ("<instant>2026-06-30T24:00:00</instant>", "instant", None, date(2026, 6, 30)),
        (
            "<startDate>2026-01-01T00:00:00</startDate><endDate>2026-04-22Z</endDate>",
            "duration",
            date(2026, 1, 1),
            date(2026, 4, 22),
        ),
    ],
)
def test_periods_of_any_length_are_kept_as_days(period: str, kind: str, start: date | None, end: date | None) -> None:
    (found,), _ = read(context("now", period), USD, fact("1"))
    assert (found.context.kind, found.context.start, found.context.end) == (kind, start, end)


def test_nil_text_and_odd_numbers_are_told_apart() -> None:
    facts, instance = read(
        INSTANT,
        USD,
        fact("", more=' xsi:nil="true"'),
        '<us-gaap:Debt contextRef="now" unitRef="usd" xsi:nil="1"/>',
        fact(" &lt;p&gt;Words &amp; more&lt;/p&gt; ", name="us-gaap:PolicyTextBlock", unit=""),
        fact("", name="us-gaap:Blank", unit=""),
        fact("INF"),
        fact("1" * 30),
        fact("1.5e-3"),
        fact(f"0.{'0' * 15}1"),
    )
    assert [(each.is_nil, each.text, each.number) for each in facts] == [
        (True, None, None),
        (True, None, None),
        (False, " <p>Words & more</p> ", None),
        (False, "", None),
        (False, "INF", None),
        (False, "1" * 30, None),
        (False, "1.5e-3", Decimal("0.0015")),
        (False, f"0.{'0' * 15}1", None),
    ]
    assert instance.rejected == []


def test_what_refers_to_nothing_or_is_no_number_is_rejected_by_its_place() -> None:
    wrong_period = context("bad", "<instant>30 June</instant>")
    facts, instance = read(
        INSTANT,
        wrong_period,
        USD,
        fact("1", at="gone"),
        fact("2", unit="gone"),
        fact("1_000"),
        fact("5", at="bad"),
        fact("6"),
        fact("<numerator>1</numerator><denominator>3</denominator>"),
    )
    assert [each.text for each in facts] == ["6"]
    assert sorted((each.position, each.reason) for each in instance.rejected) == [
        ("context bad", "its period cannot be read"),
        ("fact 1", "its context is not there"),
        ("fact 2", "its unit is not there"),
        ("fact 3", "its value is no number"),
        ("fact 4", "its context is not there"),
        ("fact 6", "its value is no number"),
    ]
    assert "us-gaap:Assets gone usd 1" in [each.text for each in instance.rejected]


def test_footnotes_are_told_with_each_fact_that_they_stand_for() -> None:
    links = (
        '<link:footnoteLink xlink:type="extended"><link:loc xlink:href="#f1" xlink:label="a"/>'
        '<link:loc xlink:href="own.xml#f2" xlink:label="a"/><link:loc xlink:href="#gone" xlink:label="b"/>'
        '<link:footnote xlink:label="n" xml:lang="en-US" xlink:role="http://www.xbrl.org/2003/role/footnote">'
        '<p xmlns="http://www.w3.org/1999/xhtml">See <b>note</b> 4.</p></link:footnote>'
        '<link:footnote xlink:label="alone">Nobody refers to this</link:footnote>'
        '<link:footnoteArc xlink:arcrole="arc" xlink:from="a" xlink:to="n"/>'
        '<link:footnoteArc xlink:arcrole="arc" xlink:from="b" xlink:to="n"/></link:footnoteLink>'
    )
    _, instance = read(INSTANT, USD, fact("1", more=' id="f1"'), fact("2", more=' id="f2"'), links)
    assert [(n.number, n.fact_position, n.language) for n in instance.footnotes] == [
        (1, 1, "en-US"),
        (1, 2, "en-US"),
        (1, 0, "en-US"),
        (2, 0, None),
    ]
    assert instance.footnotes[0].text.split() == ["See", "note", "4."]


@pytest.mark.parametrize(
    ("content", "charset", "text"),
    [
        ('<?xml version="1.0" encoding="us-ascii"?>{}'.format, "utf-8", "naïve"),
        ('\n\r\n<?xml version="1.0"?>{}'.format, "cp1252", "it’s"),
        ('<?xml version="1.0" encoding="ISO-8859-1"?>{}'.format, "utf-8", "naïve"),
        ('<?xml version="1.0" encoding="windows-1252"?>{}'.format, "utf-8", "it’s"),
    ],
)
def test_the_character_set_is_what_is_said_or_what_the_bytes_are(content: Any, charset: str, text: str) -> None:
    body = content(f"{ROOT}{INSTANT}{fact(text, name='dei:Name', unit='')}</xbrl>")
    codec = {"windows-1252": "cp1252", "ISO-8859-1": "latin-1"}.get(
        body.partition('encoding="')[2].split('"')[0], charset
    )
    (found,) = Instance(pieces(body.encode(codec), 50), charset).facts()
    assert found.text == text


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "is empty"),
        (b"<html><body>Try later</body></html>", "no instance: its root is html"),
        (ROOT.encode() + INSTANT.encode(), "no well-formed XML"),
        (b"<xbrl>", "no instance: its root is xbrl"),
        (ROOT.encode() + b"<us-gaap:A>&undefined;</us-gaap:A></xbrl>", "no well-formed XML"),
        (b'<!DOCTYPE x [<!ENTITY a "aaaa">]>' + ROOT.encode() + b"</xbrl>", "document type"),
        (b'<?xml version="1.0" encoding="no-such"?><xbrl/>', "character set|no well-formed XML"),
        (b"\x00\x01\x02", "no well-formed XML"),
    ],
)
def test_a_broken_instance_is_refused_in_words(content: bytes, reason: str) -> None:
    with pytest.raises(ParseError, match=reason):
        list(Instance(pieces(content), "utf-8").facts())


def test_the_size_of_pieces_changes_nothing() -> None:
    content = f"{ROOT}{fact('1')}{INSTANT}{fact('2')}{USD}{fact('Words &amp; more', unit='')}</xbrl>".encode()
    expected = sorted(Instance(pieces(content), "utf-8").facts())
    for size in (1, 7, 100):
        assert sorted(Instance(pieces(content, size), "utf-8").facts()) == expected


def test_instances_and_pages_with_facts_are_told_from_everything_else() -> None:
    assert xbrl.is_instance(b"\n<?xml version='1.0'?>\n<!-- made by -->\n<xbrli:xbrl xmlns:xbrli='x'>")
    assert not xbrl.is_instance(b"<xbrll:schema><html>")
    assert xbrl.is_inline(b'<html xmlns:ix="http://www.xbrl.org/2013/inlineXBRL">')
    assert not xbrl.is_inline(b"<html>")


# --- recorded ones

RECORDED = [row for row in listed("sec") if row["file"].endswith(("_htm.xml", "nflx-20100930.xml"))]


@pytest.mark.skipif(not RECORDED, reason="the recorded samples are not beside this checkout")
@pytest.mark.parametrize("row", RECORDED, ids=lambda row: row["file"])
def test_every_recorded_instance_is_read_as_the_manifest_says(row: dict[str, str]) -> None:
    expected: dict[str, Any] = json.loads(row["right_reading"])
    content = (SAMPLES / row["file"]).read_bytes()
    instance = Instance(pieces(content), "utf-8")
    facts = list(instance.facts())
    assert len(facts) == instance.count == expected["facts"]
    assert instance.rejected == []
    assert len(instance.contexts) == expected["contexts"]
    # The manifest counts those with a member by name.
    named = [
        each for each in instance.contexts.values() if any(isinstance(m, str) for m in (each.dimensions or {}).values())
    ]
    assert len(named) == expected["contexts_with_dimensions"]
    assert list(instance.units) == expected["units"]
    assert sum("us-gaap" in each.namespace for each in facts) == expected["us_gaap_facts"]
    assert sum(each.is_nil for each in facts) == expected["nil_facts"]
    plain = [each for each in facts if each.context.dimensions is None]
    for name, value in expected["dei"].items():
        assert next(each.text for each in plain if each.name == f"dei:{name}") == value
    for name, value, decimals, period in expected["undimensioned_examples"]:
        found = [
            (each.text, each.decimals)
            for each in plain
            if each.name == f"us-gaap:{name}"
            and "/".join(str(day) for day in (each.context.start, each.context.end) if day) == period
        ]
        assert (value, decimals) in found
