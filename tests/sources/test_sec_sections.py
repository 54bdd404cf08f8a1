"""A report cut into its items: nothing lost, nothing twice, whatever its markup."""

from __future__ import annotations

import pytest

from include.contract import Ask, Mode
from include.sources.sec import docs, sections, submission
from include.sources.sec.universe import UniverseUnfit, policy
from tests.sources import samples

PAGE = """<html><head><title>x</title></head><body>
<div style="display:none"><ix:header><p>Item 1. Hidden</p></ix:header></div>
<p>UNITED STATES</p><p>FORM 10-K</p>
<table><tr><td>Item 1.</td><td>Business</td><td>3</td></tr>
<tr><td>Item 1A.</td><td>Risk Factors</td><td>9</td></tr>
<tr><td>Item 7.</td><td>Management&#8217;s Discussion</td><td>20</td></tr>
<tr><td>Item 8.</td><td>Statements</td></tr></table>
<p><b>PART I</b></p><p><b>Item&nbsp;1.&nbsp;Business</b></p><p>We make things. Item 7 has more of it.</p>
<p>Item 1A of this report says more.</p><p>ITEM 1A. <i>RISK FACTORS</i></p><p>It may rain.</p>
<p>PART II</p><div>Item 7</div><div>Management&rsquo;s Discussion</div>
<table><tr><td><div>Revenue</div><div>net</div></td><td><p>$</p></td><td>7</td></tr>
</table><p>Item 8 &#8211; Statements</p>
<p>None &amp; none.</p></body></html>"""


def test_a_page_is_cut_by_its_headings_and_not_by_its_table_of_contents_or_by_sentences() -> None:
    found = sections.cut(sections.lines_of(PAGE))
    assert [(each.part, each.item, each.title) for each in found] == [
        (None, None, ""),
        ("I", "1", "Business"),
        ("I", "1A", "RISK FACTORS"),
        ("II", "7", ""),
        ("II", "8", "Statements"),
    ]
    assert found[0].lines[:2] == ["UNITED STATES", "FORM 10-K"]
    assert "Item 1A.\tRisk Factors\t9" in found[0].lines
    assert found[1].text.startswith("We make things. Item 7 has more of it.\nItem 1A of this report says more.")
    assert found[3].lines == ["Management\u2019s Discussion", "Revenue net\t$\t7"]
    assert found[4].text == "None & none."


def test_plain_text_is_cut_alike_and_a_report_without_items_is_one_section() -> None:
    text = "FORM 10-Q\n\n  PART I.  FINANCIAL INFORMATION\n  ITEM 1.   Statements\n\n a   b\n<TABLE>\n c  1\n</TABLE>\n"
    text += "Item 2.\nMore\n"
    found = sections.cut(sections.lines_of(text))
    assert [(each.part, each.item, each.title, each.lines) for each in found] == [
        (None, None, "", ["FORM 10-Q", "PART I. FINANCIAL INFORMATION"]),
        ("I", "1", "Statements", ["a b", "c 1"]),
        ("I", "2", "", ["More"]),
    ]
    (only,) = sections.cut(sections.lines_of("<p>Nothing here</p><p>at all"))
    assert (only.item, only.lines) == (None, ["Nothing here", "at all"])
    assert sections.cut([])[0].text == ""


@pytest.mark.parametrize(
    ("name", "items"),
    [
        (
            "txt_10-K_0001779026-23-000027.txt",
            ["1", "1A", "2", "3", "1B", "4", "5", "6", "7", "7A", "8", "9", "9A", "9B"],
        ),
        ("txt_10-Q_2000_0000912057-00-023442.txt", ["1", "2", "3", "1", "4", "6"]),
    ],
)
def test_a_real_report_gives_its_items_and_every_line_is_in_one(name: str, items: list[str]) -> None:
    file = samples.SAMPLES / "sec" / name
    if not file.exists():
        pytest.skip("the samples are not here")
    with file.open("rb") as body:
        report = next(each for each in submission.read(body).documents() if sections.form_of(each.type))
    with file.open("rb") as body:
        lines = sections.lines_of(submission.decode(b"".join(submission.cut(body, report))))
    found = sections.cut(lines)
    assert [each.item for each in found[1:]][: len(items)] == items
    assert sum(len(each.lines) + (each.item is not None) for each in found) == len(lines)


def test_comments_that_are_never_closed_hide_nothing_and_cost_nothing() -> None:
    text = "<html><body><!-- a -->one" + "<!-- " * 40_000 + "<p>Item 7. Discussion</p>two</body></html>"
    assert [(each.item, each.text) for each in sections.cut(sections.lines_of(text))][-1] == ("7", "two")


def test_whose_reports_are_cut_is_configured() -> None:
    watched = docs.stream(policy({"docs": "mine", "lists": {"mine": [320193]}}, None))
    subjects = tuple(f"0000000001-26-00000{each}/{cik}/2026-03-0{each} 10-K" for each, cik in ((1, 320193), (2, 7)))
    planned = [each.unit for each in watched.plan(Ask(Mode.POLL, subjects=subjects))]
    assert planned == ["0000000001-26-000001/sections"]
    listed = docs.stream(policy({"docs": "nyse"}, None))
    assert listed.subjects is not None
    assert listed.subjects.flag == "is_nyse"
    with pytest.raises(UniverseUnfit, match="nobody in it"):
        policy({"docs": "others"}, None)
