"""The SEC's feed, indexes and lists as they were really answered, and what is made of garbage."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from include import registry
from include.contract import Answer, AnswerClass, AnswerError, Ask, Mode, ParseError, Request, Span
from include.engine.credentials import NoContact, build
from include.sources.sec import answers, companies, feed, index, tickers, universe
from include.sources.sec.names import FilingKey, Quarter, cik_of, daily_index_url, quarters
from tests.sources.answers import answer, unit_of
from tests.sources.samples import SAMPLES, listed

DAY = date(2026, 9, 15)
LISTED = {row["file"].rpartition("/")[2]: row for row in listed("sec")}


def sample(name: str) -> bytes:
    file = SAMPLES / "sec" / name
    if not file.exists():
        pytest.skip("the recorded samples are not beside this checkout")
    return file.read_bytes()


def right_reading(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(LISTED[name]["right_reading"]) if name in LISTED else {}
    if not found:
        pytest.skip("the recorded samples are not beside this checkout")
    return found


def feed_request(day: date = DAY, **more: Any) -> Request:
    (request,) = feed.plan(Ask(Mode.POLL, sessions=(day,), **more))
    return request


def told(classify: Any, given: Answer) -> AnswerClass:
    try:
        return classify(given)  # type: ignore[no-any-return]
    except AnswerError:
        return AnswerClass.ERROR


# --- recorded answers


@pytest.mark.parametrize("start", [0, 1, 40])
def test_a_recorded_page_of_the_feed_is_read_as_it_should_be(start: int) -> None:
    name = f"getcurrent_count40_start{start}.xml"
    right, given = right_reading(name), unit_of(feed_request(), sample(name))
    assert feed.classify(given.answers[0]) is AnswerClass.DATA
    parsed = feed.parse(given)
    rows = list(parsed.batches[0].rows)
    assert len(rows) == right["entries"]
    assert len({row[0] for row in rows}) == right["distinct_accessions"]
    accession, form, title, updated = right["first"]
    assert (rows[0][0], rows[0][4], rows[0][7]) == (accession, form, updated)
    assert title == f"{rows[0][4]} - {rows[0][3]} ({rows[0][1]:010d}) ({rows[0][2]})"
    assert rows[0][6] == datetime.fromisoformat(updated)
    assert (rows[-1][0], rows[-1][4], rows[-1][7]) == tuple(right["last"])
    assert not parsed.rejected


def test_pages_that_moved_on_between_two_requests_give_each_party_once() -> None:
    """Pains: ids repeat, and entries are pushed down while one pages."""
    bodies = [sample(f"getcurrent_count40_start{start}.xml") for start in (0, 1, 40)]
    rows = list(feed.parse(unit_of(feed_request(), *bodies)).batches[0].rows)
    assert len({row[:3] for row in rows}) == len(rows) < 120


def test_the_recorded_503_is_an_outage_at_first_and_the_end_when_it_repeats_behind_good_pages() -> None:
    """Pains: the loop over the feed that ends in an exception."""
    body = sample("getcurrent_503.html")
    first = answer(feed_request(), body, 503)
    assert told(feed.classify, first) is AnswerClass.ERROR
    assert told(feed.classify, replace(first, tries=4)) is AnswerClass.ERROR
    later = replace(first, request=replace(first.request, params=(("start", "5100"),)))
    assert told(feed.classify, later) is AnswerClass.ERROR
    assert told(feed.classify, replace(later, tries=2)) is AnswerClass.EMPTY
    assert feed.follow(later.request, replace(later, tries=2)) == ()


@pytest.mark.parametrize("name", ["form.20200318.idx", "form.badform.idx", "form.empty.idx", "company.20221003.idx"])
def test_a_recorded_index_is_read_as_it_should_be(name: str) -> None:
    """Pains: wrong columns and lost rows where forms hold blanks and names overrun."""
    body = sample(name)
    right, rejected = right_reading(name), []
    rows = list(index.rows(body.decode("latin-1").splitlines(keepends=True), rejected))
    assert len(rows) == right["rows"]
    assert rejected == []
    for row, told_row in ((rows[0], right.get("first")), (rows[-1], right.get("last"))) if rows else ():
        names, cik, filed, path = told_row
        assert sorted(names.split(" | ")) == sorted((row.form, row.name))
        assert (str(row.cik), row.filed, row.path) == (cik, date.fromisoformat(filed), path)
    given = answer(feed_request(), body)
    assert index.classify(given) is (AnswerClass.DATA if rows else AnswerClass.EMPTY)
    # Listed twice alike is listed once; under two forms or parties it is not.
    once = list(index.read(given, []))
    assert len(once) == len({(row.accession, row.cik, row.form) for row in rows})
    if name == "form.20200318.idx":
        per_filing = Counter(row.accession for row in once)
        assert len(per_filing) == 2666
        assert {"1-A POS", "X-17A-5/A"} <= {row.form for row in once}


@pytest.mark.parametrize(
    ("name", "pages"),
    [
        ("submissions_CIK0001318605.json", ["submissions_CIK0001318605-submissions-001.json"]),
        ("submissions_CIK0001677077.json", []),
        ("submissions_CIK0000350001_no_filings.json", []),
        ("submissions_CIK0001911716_fund.json", []),
    ],
)
def test_a_recorded_list_of_a_company_is_read_as_it_should_be(name: str, pages: list[str]) -> None:
    right, body = right_reading(name), sample(name)
    (request,) = companies.plan(universe.Policy(), Ask(Mode.POLL, pending=(f"company/{int(right['cik'])}",)))
    given = unit_of(request, body)
    parsed = companies.parse(given)
    (company,), rows = list(parsed.batches[0].rows), list(parsed.batches[1].rows)
    assert (company[0], company[1], company[2], company[3]) == (
        int(right["cik"]), right["name"], right["entityType"], right["sic"],
    )  # fmt: skip
    assert (len(rows), company[5], company[10]) == (right["rows"], right["tickers"], right["fiscalYearEnd"])
    assert len({row[1] for row in rows}) == right.get("distinct_accessions", 0)
    assert sum(row[4] is None for row in rows) == right.get("blank_reportDate", 0)
    assert not parsed.rejected
    assert not parsed.unknown_columns
    followed = companies.follow(request, given.answers[0])
    assert [each.url.rpartition("/")[2] for each in followed] == [page[0] for page in right["older_pages"]]
    for page, page_request in zip(pages, followed, strict=True):
        of_page, told_page = unit_of(page_request, sample(page)), right_reading(page)
        (batch,) = companies.parse(of_page).batches
        found = list(batch.rows)
        assert len(found) == told_page["rows"]
        assert [row[0] for row in found[:1]] == [int(right["cik"])]
        assert found[0][5] == told_page["first"][3]


def test_the_recorded_absences_are_absences() -> None:
    denied = answer(replace(feed_request(), expected=True), sample("full-index_403_future_quarter.xml"), 403)
    assert index.classify(denied) is AnswerClass.NOT_YET
    missing = answer(replace(feed_request(), expected=False), sample("submissions_404_NoSuchKey.xml"), 404)
    assert companies.classify(missing) is AnswerClass.ABSENT


def test_the_recorded_list_of_tickers_is_read_though_it_names_no_exchange() -> None:
    """Pains: several tickers of a company; class shares with a dash."""
    right = right_reading("company_tickers.json")
    rows = list(tickers.parse(unit_of(feed_request(), sample("company_tickers.json"))).batches[0].rows)
    assert (len(rows), len({row[1] for row in rows})) == (right["rows"], right["distinct_cik"])
    assert {"BRK-B", "MOG-A"} <= {row[0] for row in rows}
    cik, several = right["example_several"]
    assert [row[0] for row in rows if row[1] == cik] == several


@pytest.mark.parametrize(
    ("fields", "row", "reason"),
    [
        (["cik", "name", "ticker"], [1, "A", "A"], "it lacks exchange"),
        (["cik", "name", "ticker", "Exchange"], [1, "A", "A", "NYSE"], "it lacks exchange"),
        (None, [9, "A", "NYSE"], "it has not the 4 values"),
        (None, [9, 7, "AA", "NYSE"], "its name is 7"),
        (None, [9, "A", "AA", ["NYSE"]], "its exchange is"),
        (None, [9, "A", 5, "NYSE"], "it has no ticker"),
    ],
)
def test_a_list_of_tickers_without_its_exchanges_empties_no_tier(fields: Any, row: list[Any], reason: str) -> None:
    many = [[1_000 + n, "B", f"T{n}", "Nasdaq" if n < 4_300 else "NYSE"] for n in range(7_600)]
    body = json.dumps({"fields": fields or ["cik", "name", "ticker", "exchange"], "data": [*many, row]}).encode()
    if fields:
        with pytest.raises(ParseError, match=reason):
            tickers.parse(unit_of(feed_request(), body))
        return
    parsed = tickers.parse(unit_of(feed_request(), body))
    assert len(list(parsed.batches[0].rows)) == len(many)
    assert parsed.rejected[0].reason.startswith(reason)


@pytest.mark.parametrize(
    ("titles", "line", "reason"),
    [
        ("CIK|Form Type|Company Name|Date Filed|File Name", "", "its columns are not"),
        ("CIK|Company Name|Form Type|Agent|Date Filed|File Name", "", "its columns are not"),
        ("", "7|A|10-KT|20260915|edgar/data/320193/0000320193-26-000010.txt", "not in the folder of 7"),
        ("", "0|A|NT 10-K|20260915|edgar/data/0/0000320193-26-000010.txt", "'0' is no CIK"),
        ("", "320193|A|15-12G|20260915|edgar/dta/320193/0000320193-26-000010.txt", "not in the folder"),
    ],
)
def test_columns_in_another_order_and_numbers_that_disagree_are_not_read(titles: str, line: str, reason: str) -> None:
    titles = titles or "CIK|Company Name|Form Type|Date Filed|Filename"
    good = "0000320193|A|20-F/A|2026-09-15|edgar/data/320193/0000320193-26-000009.txt"
    rejected: list[Any] = []
    lines = [titles, "-" * 80, good, *([line] if line else [])]
    if not line:
        with pytest.raises(ParseError, match=reason):
            list(index.rows(lines, rejected))
        return
    assert [(row.cik, row.form) for row in index.rows(lines, rejected)] == [(320193, "20-F/A")]
    assert reason in rejected[0].reason


def test_an_index_in_another_form_is_refused_once_and_not_line_by_line() -> None:
    head = "CIK|Company Name|Form Type|Date Filed|Filename\n" + "-" * 80 + "\n"
    line = "320193|A|10-K|2026-09-15|edgar/data/320193/0000320193-26-{:06d}.{}\n"
    body = head + "".join(line.format(n, "txt" if n < 200 else "html") for n in range(401))
    rejected: list[Any] = []
    with pytest.raises(ParseError, match="201 of its lines cannot be read; the first, line 203"):
        list(index.read(answer(feed_request(), body.encode()), rejected))


# --- telling answers apart


@pytest.mark.parametrize(
    ("status", "body", "expected", "right"),
    [
        (403, b"<?xml version='1.0'?>\n<Error><Code>AccessDenied</Code></Error>", True, AnswerClass.NOT_YET),
        (403, b"<Error>\n <Code>AccessDenied</Code></Error>", False, AnswerClass.ABSENT),
        (404, b"<Error><Code>NoSuchKey</Code></Error>", False, AnswerClass.ABSENT),
        (404, b"", True, AnswerClass.NOT_YET),
        (404, b"<html><title>Page not found</title></html>", False, AnswerClass.ABSENT),
        (403, b"<html><title>SEC.gov | Request Rate Threshold Exceeded</title></html>", True, AnswerClass.BLOCKED),
        (429, b"<html><p>Reference ID: 0.1.2.3</p></html>", True, AnswerClass.BLOCKED),
        (403, b"\xef\xbb\xbf<!DOCTYPE html><html>traffic limit</html>", True, AnswerClass.BLOCKED),
        (403, b'<?xml version="1.0"?>\n<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML"><html/>', True, AnswerClass.BLOCKED),
        (404, b"<html><title>SEC.gov | Request Rate Threshold Exceeded</title></html>", False, AnswerClass.BLOCKED),
        (429, b"slow down", True, AnswerClass.ERROR),
        (200, b"<!-- x --> <!DOCTYPE html><html>undeclared automated tool</html>", True, AnswerClass.BLOCKED),
        (403, b"no words that anybody knows", True, AnswerClass.ERROR),
        (403, b"<!-- x -->" * 300 + b"<html>", True, AnswerClass.BLOCKED),
        (200, b"<!-- x -->" * 300 + b"no page", True, AnswerClass.DATA),
        (503, b"<html><title>SEC.gov | File Unavailable</title></html>", True, AnswerClass.ERROR),
        (200, b"", True, AnswerClass.ERROR),
        (200, b" \n", True, AnswerClass.ERROR),
        (500, b"<Error><Code>InternalError</Code></Error>", True, AnswerClass.ERROR),
        (304, b"", True, AnswerClass.UNCHANGED),
        (200, b"Description: an index", True, AnswerClass.DATA),
    ],
)  # fmt: skip
def test_an_answer_is_told_by_its_body_first(status: int, body: bytes, expected: bool, right: AnswerClass) -> None:
    """Pains: a throttle page taken for "not published"; a page saved as an index; an empty text kept for good."""
    given = answer(replace(feed_request(), expected=expected), body, status)
    assert told(answers.classify, given) is right


@pytest.mark.parametrize("cut", [1, 20, 200, 1_000, 3_000])
def test_whatever_is_cut_is_an_error_or_refused_and_never_read_as_less(cut: int) -> None:
    fixtures = Path(__file__).resolve().parents[1] / "fixtures" / "sec"
    page = (fixtures / "feed.xml").read_bytes()
    given = unit_of(feed_request(), page[:cut])
    assert told(feed.classify, given.answers[0]) is AnswerClass.ERROR
    with pytest.raises(ParseError):
        feed.parse(given)
    listed = (fixtures / "company.json").read_bytes()
    assert told(companies.classify, answer(feed_request(), listed[: min(cut, len(listed) - 1)])) is AnswerClass.ERROR


# --- asking


def test_the_feed_is_read_down_to_what_is_known_or_to_midnight() -> None:
    assert feed_request().about["known"] == "2026-09-15T04:00:00+00:00"
    marks = ("known/2026-09-15T19:45:10.000000+00:00",)
    request = feed_request(subjects=marks)
    assert request.about["known"] == "2026-09-15T19:45:10+00:00"
    assert request.key == feed_request().key
    fixtures = Path(__file__).resolve().parents[1] / "fixtures" / "sec"
    page = answer(request, (fixtures / "feed.xml").read_bytes())
    accepted = [row[6] for row in feed.parse(unit_of(request, (fixtures / "feed.xml").read_bytes())).batches[0].rows]
    below = replace(request, about={"known": (min(accepted) - timedelta(hours=1)).isoformat(), "start": 0})
    (more,) = feed.follow(below, page)
    assert (dict(more.params)["start"], more.unit, more.about["known"]) == ("100", below.unit, below.about["known"])
    # A bit of what is known is read once more, as entries come a little out of order.
    met = max(accepted[-feed.AGREEING :]) + feed.OVERLAP
    assert feed.follow(replace(below, about={"known": met.isoformat(), "start": 0}), page) != ()
    past = met + timedelta(seconds=1)
    assert feed.follow(replace(below, about={"known": past.isoformat(), "start": 0}), page) == ()


def test_one_entry_of_another_time_neither_ends_a_reading_nor_hides_what_comes() -> None:
    fixtures = Path(__file__).resolve().parents[1] / "fixtures" / "sec"
    page = (fixtures / "feed.xml").read_text(encoding="latin-1")
    request = feed_request(subjects=("known/2026-09-15T04:00:00+00:00",))
    usual = feed.follow(request, answer(request, page.encode("latin-1")))
    assert len(usual) == 1
    for odd in ("1999-01-02T09:00:00-05:00", "2099-01-02T09:00:00-05:00"):
        first, _, rest = page.partition("</entry>")
        start, _, end = first.rpartition("<updated>")
        one = f"{start}<updated>{odd}</updated>{end.partition('</updated>')[2]}</entry>{rest}"
        assert feed.follow(request, answer(request, one.encode("latin-1"))) == usual
        parsed = feed.parse(unit_of(request, one.encode("latin-1")))
        (walk,) = list(parsed.batches[1].rows)
        assert walk[3] <= unit_of(request, b"").answers[0].sent_at
        assert (walk[5], walk[6]) == ("cut", False)
        assert odd in {row[7] for row in parsed.batches[0].rows}
    for no_instant in ("0001-01-01T00:00:00+05:00", "9999-12-31T23:59:59-05:00"):
        parsed = feed.parse(unit_of(request, one.replace(odd, no_instant).encode("latin-1")))
        assert [each.reason for each in parsed.rejected] == [f"{no_instant!r} is no instant"]


def test_quarters_and_days_have_the_addresses_of_their_time() -> None:
    assert Quarter.of(date(2026, 12, 31)).url.endswith("full-index/2026/QTR4/master.idx")
    assert Quarter.of(date(2026, 1, 1)).before == Quarter(2025, 4)
    assert [each.text for each in quarters(date(2025, 12, 31), date(2026, 4, 1))] == ["2026Q2", "2026Q1", "2025Q4"]
    assert Quarter(2024, 1).last == date(2024, 3, 31)
    assert daily_index_url(date(2020, 3, 18)).endswith("daily-index/2020/QTR1/master.20200318.idx")
    assert daily_index_url(date(1996, 3, 18)).endswith("daily-index/1996/QTR1/master.960318.idx")
    assert daily_index_url(date(1994, 10, 6)).endswith("daily-index/1994/QTR4/master.100694.idx")
    span = Span(Mode.BACKFILL, date(2024, 2, 1), date(2024, 4, 30), date(2026, 9, 15))
    assert [chunk.name for chunk in index.quarter_chunks(span)] == ["2024Q2", "2024Q1", "2023Q4"]


def test_a_key_of_a_filing_says_where_it_lies() -> None:
    key = FilingKey.of("0000320193-20-000010/320193/2020-03-18")
    assert key is not None
    assert key.url == "https://www.sec.gov/Archives/edgar/data/320193/0000320193-20-000010.txt"
    assert key.folder == "https://www.sec.gov/Archives/edgar/data/320193/000032019320000010/"
    assert key.text == "0000320193-20-000010/320193/2020-03-18"
    for wrong in ("0000320193-20-000010", "0000320193-20-000010/0/2020-03-18", "0000320193-20-000010/1/2020-13-18"):
        assert FilingKey.of(wrong) is None
    assert [cik_of(text) for text in ("320193", "0000320193", "CIK0000320193", "0", "AAPL", "12345678901")] == [
        320193, 320193, 320193, None, None, None,
    ]  # fmt: skip


def test_an_acceptance_is_kept_with_both_instants_that_it_may_mean_over_the_change_of_the_clocks() -> None:
    as_utc, as_local = companies.accepted("2026-03-09T17:00:00.000Z")
    assert (as_utc, as_local) == (datetime(2026, 3, 9, 17, tzinfo=UTC), datetime(2026, 3, 9, 21, tzinfo=UTC))
    as_utc, as_local = companies.accepted("2026-03-06T17:00:00.000Z")
    assert (as_utc, as_local) == (datetime(2026, 3, 6, 17, tzinfo=UTC), datetime(2026, 3, 6, 22, tzinfo=UTC))
    assert companies.accepted("") == (None, None)


# --- the universe, and who asks


def test_a_tier_without_anybody_is_an_error_that_says_where() -> None:
    for configured, members, words in (
        ({"documents": "sp500"}, [], "config/sec_sp500.yaml: the tier sp500 has nobody in it"),
        ({"documents": "mine"}, None, "names the tier 'mine', which has nobody in it"),
        ({"companies": ["mine"], "lists": {"mine": []}}, None, "config/sec.yaml: the tier mine has nobody in it"),
        ({"companies": ["all"]}, None, "found by the feed"),
        ({"companies": "watched"}, None, "must be a list"),
        ({"lists": {"mine": ["AAPL"]}}, None, "is no company"),
        ({"lists": {"mine": [{"cik": 1, "from": "soon"}]}}, None, "is no company"),
        ({"lists": {"nyse": [1]}}, None, "none of them a tier's"),
        ({"forms": "10-K"}, None, "forms must be all, or a list"),
        ({"documnets": "all"}, None, "'documnets', which nobody knows"),
        ({"companies": ["nasdaq", "nyse"]}, None, "one exchange"),
    ):
        with pytest.raises(universe.UniverseUnfit, match=words):
            universe.policy(configured, members)


def test_membership_is_dated() -> None:
    members = [{"cik": 320193}, {"cik": 1463101, "from": date(2020, 12, 21), "to": date(2024, 3, 18)}]
    policy = universe.policy({"documents": "sp500", "companies": ["sp500"]}, members)
    assert policy.members("sp500", date(2020, 12, 20)) == (320193,)
    assert policy.members("sp500", date(2024, 3, 18)) == (320193, 1463101)
    assert policy.wants_documents(1463101, date(2024, 3, 18))
    assert not policy.wants_documents(1463101, date(2024, 3, 19))
    assert policy.followed((), date(2024, 3, 19)) == (320193,)
    assert policy.knows("sp500")
    assert policy.knows("0000320193")
    assert not policy.knows("AAPL")
    some = universe.policy({"forms": ["10-K", 4]}, None)
    assert [form for form in ("10-K", "10-K/A", "4", "4/A", "10-KT", "8-K") if some.wants_form(form)] == [
        "10-K", "10-K/A", "4", "4/A",
    ]  # fmt: skip
    for named in ("SC 13G", "SCHEDULE 13G"):
        renamed = universe.policy({"forms": [named, "SC 13D/A"]}, None)
        assert all(renamed.wants_form(form) for form in ("SC 13G", "SC 13G/A", "SCHEDULE 13G", "SCHEDULE 13G/A"))
        assert renamed.wants_form("SCHEDULE 13D/A")
        assert not renamed.wants_form("SCHEDULE 13D")
    everybody = universe.policy({}, None)
    assert everybody.wants_form("8-K")
    assert everybody.wants_documents(1, DAY)


def test_nothing_is_asked_without_a_contact_and_everything_counts_for_one_rate() -> None:
    """Pains: 403 everywhere without a contact; blocked at 9.7 a second; Host set by hand."""
    source = registry.source("sec")
    with pytest.raises(NoContact, match="Nothing was asked"):
        build(source, host="")
    assert build(source, host="", extra={"user_agent": "Jane Doe jane@example.com"}).user_agent.endswith(
        "jane@example.com"
    )
    groups = {stream.host_group for stream in source.streams}
    assert len(groups) == 1
    (group,) = groups
    assert timedelta(seconds=1) / group.interval < 8
    assert group.penalty > timedelta(minutes=10)
    assert group.most_absent == 20
    for stream in source.streams:
        for request in stream.plan(Ask(Mode.POLL, sessions=(DAY,))):
            assert "host" not in {name.lower() for name, _ in request.headers}
