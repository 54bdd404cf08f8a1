"""Every release is declared so that it can be made, found and legally seen."""

from __future__ import annotations

from datetime import date

import pytest

from include import registry
from include.outputs.releases import RELEASES, Release, ReleaseError, Terms, fed_by, release

TABLES = {table.qualified: table for stream in registry.streams() for table in stream.tables}


def test_every_release_is_made_from_a_declared_table_and_is_fed_by_it() -> None:
    assert {each.table for each in RELEASES} <= set(TABLES)
    assert [(each.name, table.qualified) for each, table in fed_by(TABLES.values())] == [
        (each.name, each.table) for each in sorted(RELEASES, key=lambda one: one.priority)
    ]


def test_no_two_releases_share_a_name_or_a_path() -> None:
    assert len({each.name for each in RELEASES}) == len(RELEASES)
    assert len({each.path for each in RELEASES}) == len(RELEASES)
    for each in RELEASES:
        assert each.path.startswith(each.name)
        assert each.path.endswith(".parquet")


def test_a_release_is_private_unless_its_terms_name_a_source_and_a_date() -> None:
    with pytest.raises(ReleaseError, match="source and a date"):
        Release("a/b", "t", "s.t", "a/b.parquet", "whole", Terms("Open"), visibility="public")
    terms = Terms("Open", "https://example.org/terms", date(2026, 9, 1))
    assert Release("a/b", "t", "s.t", "a/b.parquet", "whole", terms, visibility="public").visibility == "public"
    assert release("finra/short_volume").visibility == "private"


def test_a_path_that_does_not_fit_the_cut_is_refused() -> None:
    with pytest.raises(ReleaseError, match="does not fit"):
        Release("a/b", "t", "s.t", "a/b.parquet", "month", Terms(""))
    with pytest.raises(ReleaseError, match="does not fit"):
        Release("a/b", "t", "s.t", "a/b/{month}.parquet", "whole", Terms(""))


@pytest.mark.parametrize(
    ("name", "first", "after"),
    [("2026-09", date(2026, 9, 1), date(2026, 10, 1)), ("2026-12", date(2026, 12, 1), date(2027, 1, 1))],
)
def test_a_month_is_one_file(name: str, first: date, after: date) -> None:
    part = release("finra/short_volume").part(name)
    assert (part.path, part.first, part.after) == (f"finra/short_volume/{name}.parquet", first, after)


@pytest.mark.parametrize("name", ["2026-13", "2026-9", "all", "", "2026-09-01", "../x"])
def test_a_part_that_cannot_be_is_refused_in_words(name: str) -> None:
    with pytest.raises(ReleaseError, match="has no part"):
        release("finra/short_volume").part(name)


def test_an_unknown_release_is_refused_and_the_known_are_named() -> None:
    with pytest.raises(ReleaseError, match="finra/short_volume"):
        release("finra/long_volume")
