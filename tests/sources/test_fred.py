"""FRED: how its answers are told apart and read, and what is asked for, without a network."""

from __future__ import annotations

import csv
import hashlib
import json
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pytest

from include import registry
from include.contract import AnswerClass, AnswerError, Ask, DefiniteRefusal, Mode, ParseError, Request, Span, Unit
from include.settings import ROOT, SettingError
from include.sources import fred
from include.sources.fred import answers, spans, streams, vintages
from include.sources.fred.spans import Stretch
from include.sources.fred.tables import SERIES, UNKNOWN_DAY, VINTAGES
from tests.sources import strange
from tests.sources.answers import FIXTURES, answer

CATALOGUE = fred.catalogue({"growth": ["GDP", "GDPC1"], "rates": ["DGS10", "GDP"]})
STREAM = streams.observations(CATALOGUE)
DAY = date(2026, 9, 15)
YEAR = spans.of_year(2026)


def first(series: str = "GDP", stretch: Stretch = YEAR, **more: Any) -> Request:
    return streams.first_request(series, stretch, is_over=more.pop("is_over", False), **more)


def body_of(name: str) -> bytes:
    return (FIXTURES / "fred" / name).read_bytes()


def read(unit: str, *bodies: bytes) -> dict[str, list[dict[str, Any]]]:
    """The rows of a unit by table, each by column name."""
    request = replace(first(), key=unit, unit=unit)
    parsed = STREAM.parse(Unit(unit, None, tuple(answer(request, body) for body in bodies)))
    return {
        batch.table.name: [
            dict(zip((*batch.table.column_names, "extra"), row, strict=True)) for row in batch.rows
        ]
        for batch in parsed.batches
    }  # fmt: skip


def values(start: str, end: str, *rows: tuple[str, str, str, str], count: int | None = None, offset: int = 0) -> bytes:
    """A page of values: real-time start and end, day, text."""
    document = {
        "realtime_start": start, "realtime_end": end, "units": "lin", "output_type": 1, "offset": offset,
        "count": len(rows) if count is None else count, "limit": 100000,
        "observations": [
            {"realtime_start": since, "realtime_end": until, "date": day, "value": text}
            for since, until, day, text in rows
        ],
    }  # fmt: skip
    return json.dumps(document).encode()


def events(found: dict[str, list[dict[str, Any]]]) -> list[tuple[str, str, str | None]]:
    """Observation, day on which it became so, and text; None: withdrawn."""
    return [
        (f"{row['observation_date']}", f"{row['realtime_start']}", row["value_text"])
        for row in found[VINTAGES.name]
    ]  # fmt: skip


# --- stretches of real time


def test_a_stretch_never_holds_more_vintages_than_fred_answers_for() -> None:
    for year in range(1921, 2060):
        stretch = spans.of_year(year)
        assert stretch.holds(date(year, 7, 1))
        # Counted from its eve, with a vintage on every single day.
        assert (stretch.last - stretch.eve).days + 1 < spans.MOST_VINTAGES
        assert spans.of_year(stretch.first.year) == spans.of_year(stretch.last.year) == stretch


def test_stretches_follow_each_other_without_a_gap() -> None:
    stretch = spans.of_year(2028)
    while stretch.first.year > 1921:
        before = spans.of_year(stretch.eve.year)
        assert before.last == stretch.eve
        stretch = before


def test_a_units_name_is_read_back_as_it_was() -> None:
    assert [spans.of_year(year).name for year in (2026, 2025, 2021, 2020)] == [
        "2026", "2021-2025", "2021-2025", "2016-2020",
    ]  # fmt: skip
    for year in (1955, 2016, 2025, 2026, 2031):
        stretch = spans.of_year(year)
        assert spans.named(f"CES0500000003/{stretch.name}") == ("CES0500000003", stretch)
    for other in ("GDP/2025", "GDP/2021-2026", "gdp/2026", "GDP", "/2026", "GDP/2026/x"):
        assert spans.named(other) is None


# --- what is asked for


def test_the_first_window_reads_every_series_and_later_ones_what_was_updated() -> None:
    requests = list(STREAM.plan(Ask(Mode.POLL, sessions=(DAY,))))
    assert [request.key for request in requests] == ["GDP/2026", "GDPC1/2026", "DGS10/2026"]
    assert {request.since for request in requests} == {None}
    later = Ask(Mode.POLL, sessions=(DAY,), checkpoint=DAY - timedelta(days=1))
    assert {request.since for request in STREAM.plan(later)} == {date(2026, 9, 11)}


def test_a_series_that_failed_before_is_read_whatever_was_updated() -> None:
    ask = Ask(Mode.POLL, sessions=(DAY,), checkpoint=DAY - timedelta(days=1), pending=("GDP/2026",))
    since = {request.key: request.since for request in STREAM.plan(ask)}
    assert since["GDP/2026"] is None
    assert since["DGS10/2026"] is not None


def test_days_of_downtime_are_one_request_a_series() -> None:
    sessions = tuple(DAY - timedelta(days=n) for n in range(30))
    requests = list(STREAM.plan(Ask(Mode.POLL, sessions=sessions, checkpoint=sessions[-1] - timedelta(days=1))))
    assert len(requests) == 3
    assert requests[0].since == sessions[-1] - timedelta(days=4)


def test_the_year_before_is_asked_for_until_a_week_after_new_year() -> None:
    def asked(day: date) -> list[str]:
        return [request.key for request in STREAM.plan(Ask(Mode.POLL, sessions=(day,))) if request.key[:4] == "GDP/"]

    assert asked(date(2028, 1, 7)) == ["GDP/2028", "GDP/2027"]
    assert asked(date(2028, 1, 8)) == ["GDP/2028"]
    assert asked(date(2026, 1, 2)) == ["GDP/2026", "GDP/2021-2025"]


def test_only_a_stretch_that_has_ended_is_asked_for_to_its_end() -> None:
    def end(ask: Ask) -> list[str]:
        return [dict(request.params)["realtime_end"] for request in STREAM.plan(ask) if request.key[:4] == "GDP/"]

    assert end(Ask(Mode.POLL, sessions=(DAY,))) == ["9999-12-31"]
    assert end(Ask(Mode.POLL, sessions=(date(2027, 1, 3),))) == ["9999-12-31", "2026-12-31"]
    assert end(Ask(Mode.POLL, pending=("GDP/2016-2020",))) == ["2020-12-31"]
    chunk = {"series": "GDP", "year": 2026, "today": "2026-12-31"}
    assert end(Ask(Mode.BACKFILL, chunk=chunk)) == ["9999-12-31"]
    assert end(Ask(Mode.BACKFILL, chunk={**chunk, "today": "2027-01-01"})) == ["2026-12-31"]


def test_a_window_begins_on_the_eve_so_that_news_can_be_told_from_state() -> None:
    assert dict(first().params)["realtime_start"] == "2025-12-31"


def test_keys_name_series_or_groups() -> None:
    def planned(*keys: str) -> list[str]:
        return [request.key for request in STREAM.plan(Ask(Mode.POLL, sessions=(DAY,), keys=keys))]

    assert planned("rates") == ["DGS10/2026", "GDP/2026"]
    assert planned("GDPC1") == ["GDPC1/2026"]
    assert STREAM.known_key("rates")
    assert STREAM.known_key("DGS10")
    assert not STREAM.known_key("UNRATE")


def test_chunks_are_series_by_year_and_one_request_serves_five_years_of_the_past() -> None:
    span = Span(Mode.BACKFILL, date(2019, 6, 1), DAY, DAY, ("GDP",))
    assert STREAM.chunks is not None
    found = list(STREAM.chunks(span))
    assert [chunk.name for chunk in found] == [f"GDP/{year}" for year in range(2026, 2018, -1)]
    assert [chunk.session_date for chunk in found][:2] == [DAY, date(2025, 12, 31)]
    keys = [request.key for chunk in found for request in STREAM.plan(Ask(Mode.BACKFILL, chunk=chunk.asks))]
    assert list(dict.fromkeys(keys)) == ["GDP/2026", "GDP/2021-2025", "GDP/2016-2020"]


def test_a_replay_has_one_chunk_for_each_unit() -> None:
    assert STREAM.chunks is not None
    span = Span(Mode.REPLAY, date(2019, 6, 1), date(2023, 3, 1), DAY, ("GDP",))
    assert [chunk.name for chunk in STREAM.chunks(span)] == ["GDP/2023", "GDP/2020"]


def test_newer_years_of_all_series_come_before_older_ones() -> None:
    assert STREAM.chunks is not None
    names = [chunk.name for chunk in STREAM.chunks(Span(Mode.BACKFILL, date(2025, 1, 1), DAY, DAY))]
    assert names == ["GDP/2026", "GDPC1/2026", "DGS10/2026", "GDP/2025", "GDPC1/2025", "DGS10/2025"]


# --- what follows an answer


def described(updated: str = "2026-09-11 07:46:10-05") -> bytes:
    document = json.loads(body_of("description.json"))
    document["seriess"][0] |= {"id": "GDP", "last_updated": updated}
    return json.dumps(document).encode()


def follow(request: Request, body: bytes, status: int = 200) -> list[Request]:
    return list(STREAM.follow(request, answer(request, body, status)))


def test_values_are_read_where_the_series_was_updated_since() -> None:
    # The offset has two digits, at which a strict reader of instants stumbles.
    for since, is_read in ((date(2026, 9, 11), True), (date(2026, 9, 12), False), (None, True)):
        assert bool(follow(first(since=since), described())) is is_read
    assert follow(first(since=DAY), described(updated="some day"))


def test_values_are_asked_for_in_the_period_of_the_description() -> None:
    (page,) = follow(first(), described())
    assert page.url.endswith("/fred/series/observations")
    assert page.unit == "GDP/2026"
    params = dict(page.params)
    assert params["limit"] == "100000"
    assert (params["offset"], params["realtime_start"], params["realtime_end"]) == ("0", "2025-12-31", "9999-12-31")
    assert params["file_type"] == "json"


def test_pages_are_followed_by_count_though_they_are_short_of_it() -> None:
    (page,) = follow(first(), described())
    row = ("2026-01-30", "9999-12-31", "2025-10-01", "1")
    (second,) = follow(page, values("2025-12-31", "9999-12-31", row, row, count=5))
    assert dict(second.params)["offset"] == "2"
    (third,) = follow(second, values("2025-12-31", "9999-12-31", row, count=5, offset=2))
    assert dict(third.params)["offset"] == "3"
    assert not follow(third, values("2025-12-31", "9999-12-31", row, row, count=5, offset=3))
    # An empty page before the count is reached ends the asking, which the parser then refuses.
    assert not follow(third, values("2025-12-31", "9999-12-31", count=5, offset=3))
    keys = [page.key, second.key, third.key]
    assert len(set(keys)) == 3


def test_a_series_without_vintages_is_asked_for_as_it_stands_today() -> None:
    nothing = body_of("no_vintages.json")
    (today,) = follow(first(), nothing, 400)
    assert not any(name.startswith("realtime") for name, _ in today.params)
    (page,) = follow(today, described())
    assert not any(name.startswith("realtime") for name, _ in page.params)
    assert follow(first(stretch=spans.of_year(1950), is_over=True), nothing, 400) == []
    (windowed,) = follow(first(), described())
    (again,) = follow(windowed, nothing, 400)
    assert again.url.endswith("/observations")
    assert not any(name.startswith("realtime") for name, _ in again.params)
    assert len({today.key, page.key, windowed.key, again.key}) == 3


def test_nothing_follows_where_the_values_are_withheld() -> None:
    (page,) = follow(first(), described())
    assert follow(page, body_of("withheld.json"), 404) == []


# --- answers


def refusal(text: str, code: int = 400) -> bytes:
    return json.dumps({"error_code": code, "error_message": text}).encode()


@pytest.mark.parametrize(
    ("text", "may_pass"),
    [
        ("Bad Request.  Variable api_key is not set.", False),
        ("Bad Request.  The value for variable api_key is not a 32 character alpha-numeric lower-case string.", False),
        ("Bad Request.  The value for variable api_key is not registered.", True),
    ],
)
def test_a_key_that_is_refused_is_a_matter_of_configuration(text: str, may_pass: bool) -> None:
    for body in (refusal(text), f'<?xml version="1.0" ?>\n<error code="400" message="{text}" />'.encode()):
        with pytest.raises(DefiniteRefusal, match="connection fred") as caught:
            STREAM.classify(answer(first(), body, 400))
        assert caught.value.may_pass is may_pass


@pytest.mark.parametrize(
    ("status", "text", "words", "may_pass"),
    [
        (400, "Bad Request.  The series does not exist.", "FRED has no series GDP", False),
        (400, "Bad Request.  This exceeds the maximum number of vintage dates (2000).", "too long", False),
        (400, "Bad Request.  Variable realtime_end can not be after today's date (2026-09-18)", "not begun", True),
        (400, "Bad Request.", "FRED says 400", True),
        (423, "Locked.", "FRED says 423", True),
        (429, "Too Many Requests.  Exceeded Rate Limit", "FRED says 429", True),
        (500, "Internal Server Error", "FRED says 500", True),
        (404, "Not Found", "FRED says 404", False),
        (403, "Forbidden", "FRED says 403", False),
    ],
)
def test_other_refusals_are_told_in_words(status: int, text: str, words: str, may_pass: bool) -> None:
    with pytest.raises(AnswerError, match=words) as caught:
        STREAM.classify(answer(first(), refusal(text, status), status))
    assert caught.value.may_pass is may_pass


def test_an_error_that_comes_with_success_is_an_error() -> None:
    with pytest.raises(AnswerError, match="has no series"):
        STREAM.classify(answer(first(), refusal("Bad Request.  The series does not exist."), 200))


def test_what_begins_like_xml_is_never_data_whatever_its_type() -> None:
    body = b'<?xml version="1.0" encoding="utf-8" ?>\n<seriess><series id="GDP" /></seriess>'
    assert STREAM.classify(answer(first(), body)) is AnswerClass.ERROR
    page = b"<html><body>DATE,VALUE</body></html>"
    assert STREAM.classify(answer(first(), page, **{"content-type": "text/csv"})) is AnswerClass.BLOCKED
    assert STREAM.classify(answer(first(), described(), **{"content-type": "text/xml"})) is AnswerClass.DATA


# --- values and descriptions


def test_news_within_the_window_become_rows_and_state_does_not() -> None:
    found = read("ZGDP/2026", body_of("values.json"))
    assert events(found) == [
        ("2025-07-01", "2026-03-30", "22010.5"),
        ("2025-10-01", "2026-01-30", "22100.00"),
        ("2025-10-01", "2026-03-30", "-0.5"),
        ("2026-01-01", "2026-04-29", "."),
        ("2026-01-01", "2026-05-28", "22300"),
        ("2026-04-01", "2026-07-29", "1.5E4"),
    ]
    by_text = {row["value_text"]: row["value"] for row in found[VINTAGES.name]}
    assert by_text["."] is None
    assert by_text["22100.00"] == Decimal("22100.00")
    assert str(by_text["22100.00"]) == "22100.00"
    assert by_text["1.5E4"] == 15000


def test_a_value_that_is_published_no_more_is_withdrawn_and_may_come_back() -> None:
    found = read("ZGDP/2026", body_of("values_withdrawn.json"))
    assert events(found) == [
        ("2025-10-01", "2026-02-11", None),
        ("2025-11-01", "2026-02-11", None),
        ("2025-11-01", "2026-03-01", "5.2"),
    ]
    assert [row["is_withdrawn"] for row in found[VINTAGES.name]] == [True, True, False]


@pytest.mark.parametrize("text", ["-0.00871973561961632", "6.72727272727273E-13", "123456789012345678901234.5", "1E40"])
def test_a_number_of_more_digits_than_fit_is_kept_as_it_is_written(text: str) -> None:
    long = ("2026-01-05", "9999-12-31", "2025-10-01", text)
    most = ("2026-02-05", "9999-12-31", "2025-11-01", "-0.355546266299747")
    found = read("ZGDP/2026", values("2025-12-31", "9999-12-31", long, most))
    assert [(row["value_text"], row["value"]) for row in found[VINTAGES.name]] == [
        (text, None),
        ("-0.355546266299747", Decimal("-0.355546266299747")),
    ]


def test_a_period_that_ends_before_it_begins_is_refused() -> None:
    page = json.loads(values("9999-12-31", "2025-12-31", ("2026-01-05", "9999-12-31", "2025-10-01", "1")))
    with pytest.raises(ParseError, match="before it begins"):
        vintages.read_pages([page])


def test_two_values_on_one_day_are_not_read() -> None:
    rows = [("2026-01-05", "9999-12-31", "2025-10-01", "1"), ("2026-02-05", "9999-12-31", "2025-10-01", "2")]
    with pytest.raises(ParseError, match="two values of 2025-10-01 hold on 2026-02-05"):
        read("GDP/2026", values("2025-12-31", "9999-12-31", *rows))


def test_missing_values_are_rows_in_every_vintage() -> None:
    body = values(
        "2025-12-31", "9999-12-31",
        ("2026-01-30", "2026-02-26", "2025-10-01", "."), ("2026-02-27", "2026-03-29", "2025-10-01", "3.8"),
        ("2026-03-30", "9999-12-31", "2025-10-01", "."), ("2026-01-30", "9999-12-31", "2025-11-01", "3.9"),
    )  # fmt: skip
    found = read("UNRATE/2026", body)
    assert [text for _, _, text in events(found)] == [".", "3.8", ".", "3.9"]
    assert [row["value"] for row in found[VINTAGES.name]] == [None, Decimal("3.8"), None, Decimal("3.9")]


def test_windows_cut_in_pieces_come_to_the_same_rows_as_one() -> None:
    history = [
        (("2026-01-05", "2027-03-09"), "1"), (("2027-03-10", "2028-01-14"), "2"), (("2028-01-15", "9999-12-31"), "3"),
    ]  # fmt: skip

    def window(start: str, end: str) -> bytes:
        rows = [
            (max(since, start), min(until, end), "2025-10-01", text)
            for (since, until), text in history
            if since <= end and until >= start
        ]
        return values(start, end, *rows)

    pieces = [
        *events(read("A/2026", window("2025-12-31", "2026-12-31"))),
        *events(read("A/2027", window("2026-12-31", "2027-12-31"))),
        *events(read("A/2028", window("2027-12-31", "9999-12-31"))),
    ]
    assert pieces == [
        ("2025-10-01", "2026-01-05", "1"), ("2025-10-01", "2027-03-10", "2"), ("2025-10-01", "2028-01-15", "3"),
    ]  # fmt: skip
    # Asked for a longer period, each unit keeps to its own years.
    whole = window("2025-12-31", "9999-12-31")
    assert [event for year in (2026, 2027, 2028) for event in events(read(f"A/{year}", whole))][:1] == pieces[:1]
    assert events(read("A/2027", whole)) == pieces[1:2]


def test_values_of_series_without_vintages_have_no_day_of_publication() -> None:
    found = read("ZGDP/2026", body_of("values_of_today.json"))
    assert {row["realtime_start"] for row in found[VINTAGES.name]} == {UNKNOWN_DAY}
    assert [row["value_text"] for row in found[VINTAGES.name]] == ["17.30", "."]


@pytest.mark.parametrize("lost", [{"value": None}, {"value": "12,5"}, {"realtime_end": "soon"}, {"date": 7}])
def test_a_row_that_cannot_be_read_withdraws_nothing(lost: dict[str, Any]) -> None:
    """The gap that it leaves between two values is ours, and no news."""
    document = json.loads(
        values(
            "2025-12-31", "9999-12-31",
            ("2026-01-30", "2026-02-26", "2025-10-01", "1"), ("2026-02-27", "2026-03-29", "2025-10-01", "2"),
            ("2026-03-30", "9999-12-31", "2025-10-01", "3"), ("2026-01-30", "2026-02-26", "2025-11-01", "4"),
        )
    )  # fmt: skip
    document["observations"][1] |= lost
    found = events(read("GDP/2026", json.dumps(document).encode()))
    assert [event for event in found if event[0] == "2025-10-01"] == [
        ("2025-10-01", "2026-01-30", "1"), ("2025-10-01", "2026-03-30", "3"),
    ]  # fmt: skip
    # Another observation really was taken back, as far as it is known whose row was lost.
    assert (("2025-11-01", "2026-02-27", None) in found) is ("date" not in lost)


def test_a_value_that_ends_before_it_begins_is_no_row() -> None:
    rows = [("2026-02-05", "2026-01-05", "2025-10-01", "1"), ("2026-02-05", "9999-12-31", "2025-11-01", "2")]
    window = vintages.read_pages([json.loads(values("2025-12-31", "9999-12-31", *rows))])
    assert [each.reason for each in window.rejected] == ["it holds until 2026-01-05, which is before 2026-02-05"]


def test_a_description_without_a_title_or_its_days_is_refused_and_none_is_made_up() -> None:
    for change, words in (
        ({"title": None}, "has None for 'title', which is no str"),
        ({"units": 5}, "has 5 for 'units'"),
        ({"notes": ["x"]}, "has \\['x'\\] for 'notes'"),
        ({"id": "OTHER"}, "describes OTHER, not GDP"),
    ):
        document = json.loads(described())
        document["seriess"][0] |= change
        with pytest.raises(ParseError, match=words):
            read("GDP/2026", json.dumps(document).encode())
    # Without its days nobody knows whether it is today's only.
    document = json.loads(described())
    del document["realtime_start"], document["realtime_end"]
    with pytest.raises(ParseError, match="lacks 'realtime_start'"):
        read("GDP/2026", json.dumps(document).encode())


def test_an_upstream_that_gives_the_first_page_for_ever_is_not_followed_for_ever() -> None:
    (page,) = follow(first(), described())
    row = ("2026-01-30", "9999-12-31", "2025-10-01", "1")
    (second,) = follow(page, values("2025-12-31", "9999-12-31", row, count=5))
    again = values("2025-12-31", "9999-12-31", row, count=5)
    assert follow(second, again) == []
    with pytest.raises(ParseError, match="a page begins at row 0, the one before ended at row 1"):
        read("GDP/2026", again, again)


def test_whatever_stands_in_an_answer_is_read_rejected_or_refused_in_words() -> None:
    request = replace(first(), key="ZGDP/2026", unit="ZGDP/2026")
    (page,) = follow(request, described())
    read_at_all = strange.check(STREAM, request, body_of("description_changed.json"))
    for name in ("values.json", "values_of_today.json"):
        read_at_all += strange.check(STREAM, page, body_of(name))
    assert read_at_all > 100


def test_pages_of_a_set_that_changed_meanwhile_are_not_read() -> None:
    row = ("2026-01-30", "9999-12-31", "2025-10-01", "1")
    pages = (
        values("2025-12-31", "9999-12-31", row, count=2),
        values("2025-12-31", "9999-12-31", row, count=3, offset=1),
    )
    with pytest.raises(ParseError, match="changed while it was read"):
        read("GDP/2026", *pages)


def test_a_description_holds_from_its_day_or_from_the_first_of_the_year() -> None:
    found = read("ZGDP/2026", body_of("description_changed.json"))[SERIES.name]
    assert [(f"{row['realtime_start']}", row["is_carried"], row["units"]) for row in found] == [
        ("2026-01-01", True, "Billions of Chained 2012 Dollars"),
        ("2026-03-26", False, "Billions of Chained 2017 Dollars"),
    ]
    assert found[0]["notes"] == "Line one.\r\nSee https://example.org/zgdp."
    assert all(row["has_observations"] for row in found)


def test_what_changes_daily_is_no_part_of_a_description() -> None:
    columns = set(SERIES.column_names)
    assert not columns & {"popularity", "group_popularity", "last_updated", "realtime_end", "observation_end"}


def test_an_unknown_field_is_kept_and_reported() -> None:
    (row,) = read("ZGDP/2026", body_of("description_one_field_more.json"))[SERIES.name]
    assert row["extra"] == {"copyright_id": 2}
    (value,) = read("ZGDP/2026", body_of("values_one_field_more.json"))[VINTAGES.name]
    assert value["extra"] == {"flag": "p"}


def test_withheld_values_leave_the_description_and_say_so() -> None:
    (row,) = read("ZGDP/2026", body_of("description.json"), body_of("withheld.json"))[SERIES.name]
    assert row["has_observations"] is False


# --- the list of series


def test_the_default_list_is_wide_and_each_name_could_be_a_series() -> None:
    stream = registry.stream("fred.observations")
    for group in ("growth", "prices", "labour", "rates", "credit", "housing", "money", "fx"):
        assert stream.known_key(group)
    assert len(list(stream.plan(Ask(Mode.POLL, sessions=(DAY,))))) >= 100


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        (None, "must name groups"),
        ({}, "must name groups"),
        (["GDP"], "must name groups"),
        ({"growth": "GDP"}, "must be a list"),
        ({"growth": []}, "must be a list"),
        ({"growth": ["gdp"]}, "in quotes"),
        ({"growth": [False]}, "in quotes"),
        ({"Growth!": ["GDP"]}, "group's name"),
    ],
)
def test_a_list_that_cannot_be_used_is_refused_in_words(groups: Any, words: str) -> None:
    with pytest.raises(fred.CatalogueUnfit, match=words):
        fred.source(groups)


def test_no_date_but_a_real_one_is_read() -> None:
    for text in ("01/02/2020", "2020-13-01", "", "2020-1-2"):
        with pytest.raises(ParseError, match="is not a date"):
            vintages.day_of(text)


# --- recorded answers

SAMPLES = ROOT.parent / "shared" / "upstream" / "samples"


def samples() -> list[dict[str, str]]:
    """The recorded answers of FRED beside the checkout, if they are there."""
    manifest = SAMPLES / "MANIFEST.tsv"
    if not manifest.exists():
        return []
    with manifest.open(encoding="utf-8", newline="") as lines:
        listed = csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
        return [row for row in listed if row["source"] == "fred"]


LISTED = samples()


@pytest.mark.skipif(not LISTED, reason="the recorded samples are not beside this checkout")
@pytest.mark.parametrize("sample", LISTED, ids=[row["file"] for row in LISTED] or None)
def test_a_recorded_answer_is_read_as_its_manifest_says(sample: dict[str, str]) -> None:
    path, right = SAMPLES / sample["file"], json.loads(sample["right_reading"])
    body = path.read_bytes()
    assert hashlib.sha256(body).hexdigest() == sample["sha256"]
    if "text" in right:
        with pytest.raises(AnswerError, match="not begun in St"):
            STREAM.classify(answer(first("WALCL"), body, 400))
        return
    document = json.loads(body)
    if "body" in document:
        body = json.dumps(document["body"]).encode()
        document = document["body"]
    said = answers.told(body)
    assert said.document == document
    if "missing" in right:
        assert STREAM.classify(answer(first(), body)) is AnswerClass.DATA
        _check_observations(document, right)
    elif right.get("output_type") == 4:
        # Another form than the one that we ask for is never taken for it.
        with pytest.raises(ParseError, match="another form"):
            vintages.read_pages([document])
        rows = document["observations"]
        assert (len(rows), rows[0], rows[-1]) == (right["rows"], right["first"], right["last"])
    elif path.name == "series_GDP.json":
        assert STREAM.classify(answer(first(), body)) is AnswerClass.DATA
        (row,) = read("GDP/2021-2025", body)[SERIES.name]
        told = right["first"]
        assert (row["title"], row["frequency_short"]) == (told["title"], told["frequency_short"])
        assert (row["units_short"], row["seasonal_adjustment_short"]) == ("Bil. of $", "SAAR")
        assert vintages.last_updated(answer(first(), body)) == date(2024, 10, 30)
    elif "seriess" in document:
        assert len(document["seriess"]) == right["rows"] == document["count"]
        for item, told in ((document["seriess"][0], right["first"]), (document["seriess"][-1], right["last"])):
            one = json.dumps({**document, "seriess": [item]}).encode()
            (row,) = read(f"{told['id']}/2021-2025", one)[SERIES.name]
            assert (row["title"], row["frequency_short"]) == (told["title"], told["frequency_short"])
    elif "vintage_dates" in document:
        dates = document["vintage_dates"]
        assert (len(dates), dates[0], dates[-1]) == (right["rows"], right["first"], right["last"])
        per_stretch = [
            sum(spans.of_year(year).holds(date.fromisoformat(day)) for day in dates) for year in (1995, 2024)
        ]
        assert all(count < spans.MOST_VINTAGES for count in per_stretch)
    else:
        # Endpoints that the stream does not ask: never taken for its own.
        assert STREAM.classify(answer(first(), body)) is AnswerClass.ERROR


def _check_observations(document: dict[str, Any], right: dict[str, Any]) -> None:
    if right["count"] > right["rows"]:
        with pytest.raises(ParseError, match="they were cut"):
            vintages.read_pages([document])
        document = {**document, "count": right["rows"]}
    window = vintages.read_pages([document])
    rows = [[f"{each.start}", f"{each.end}", f"{each.day}", each.text] for each in window.observations]
    assert len(rows) == right["rows"]
    assert [f"{window.start}", f"{window.end}"] == right["realtime"]
    assert (rows[0], rows[-1]) == (right["first"], right["last"])
    assert len({row[2] for row in rows}) == right["distinct_dates"]
    missing = [row[2] for row in rows if vintages.number(row[3]) is None]
    assert (len(missing), missing[:3]) == (right["missing"], right["missing_first"])
    assert all(Decimal(row[3]) == vintages.number(row[3]) for row in rows if row[3] != ".")


@pytest.mark.skipif(not LISTED, reason="the recorded samples are not beside this checkout")
def test_a_recorded_history_comes_to_the_same_values_on_every_day() -> None:
    """Units of five years each, cut out of one recorded answer, tell what it says of any day."""
    document = json.loads((SAMPLES / "fred" / "observations_GDP_all_vintages.json").read_bytes())
    window = vintages.read_pages([document])
    told: dict[date, list[tuple[date, str | None]]] = {}
    for year in range(2025, 1985, -5):
        stretch = spans.of_year(year)
        rows = [
            (f"{max(each.start, stretch.eve)}", f"{min(each.end, stretch.last)}", f"{each.day}", each.text)
            for each in window.observations
            if each.start <= stretch.last and each.end >= stretch.eve
        ]
        for row in read(f"GDP/{stretch.name}", values(f"{stretch.eve}", f"{stretch.last}", *rows))[VINTAGES.name]:
            told.setdefault(row["observation_date"], []).append((row["realtime_start"], row["value_text"]))
    for when in (date(1991, 12, 4), date(1996, 1, 18), date(1996, 1, 19), date(2009, 7, 31), date(2024, 10, 30)):
        right = {each.day: each.text for each in window.observations if each.start <= when <= each.end}
        held = {}
        for day, changes in told.items():
            known = [change for change in sorted(changes) if change[0] <= when]
            if known and known[-1][1] is not None:
                held[day] = known[-1][1]
        assert held == right, when


def test_some_groups_may_be_collected_and_one_that_is_not_there_is_named() -> None:
    groups = {"growth": ["GDP"], "prices": ["CPIAUCSL"], "fx": ["DEXKOUS"]}
    assert registry._some(groups, (), "SOME_GROUPS") == groups
    assert registry._some(groups, ("fx", "growth"), "SOME_GROUPS") == {"fx": ["DEXKOUS"], "growth": ["GDP"]}
    with pytest.raises(SettingError, match="names 'gdp'; there are growth, prices, fx"):
        registry._some(groups, ("gdp",), "SOME_GROUPS")
