"""Every release is declared so that it can be made, found and legally seen."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import date

import psycopg
import pytest

from include import registry
from include.outputs import releases
from include.outputs.parquet import published_columns
from include.outputs.releases import OURS, RELEASES, Release, ReleaseError, Terms, fed_by, feeding, release
from include.outputs.shapes import FRED_SERIES as SHAPE

TABLES = {table.qualified: table for stream in registry.streams() for table in stream.tables}


def test_every_release_is_made_from_a_declared_table_and_is_fed_by_it() -> None:
    assert {name for each in RELEASES for name in each.tables} <= set(TABLES) | OURS
    assert [(each.name, table.qualified) for each, table in fed_by(TABLES.values())] == [
        (each.name, each.table)
        for each in sorted(RELEASES, key=lambda one: one.priority)
        if each.cut != "scan" and each.table
    ]
    assert set(feeding(TABLES.values())) == {mark for each in RELEASES for mark in each.marks}


def test_a_view_that_a_release_reads_has_the_columns_that_are_declared_of_it(database: str) -> None:
    shapes = [each.shape for each in RELEASES if each.shape is not None]
    assert shapes
    with psycopg.connect(database) as connection:
        for shape in shapes:
            found = connection.execute(
                "select column_name, data_type from information_schema.columns "
                "where table_schema = %s and table_name = %s order by ordinal_position",
                (shape.schema, shape.name),
            ).fetchall()
            kinds = {"timestamp with time zone": "timestamptz"}
            declared = [(column.name, column.type) for column in published_columns(shape)]
            assert [(name, kinds.get(kind, kind)) for name, kind in found if name != "fetch_id"] == declared
    beside = [each for each in RELEASES if each.newest is not None]
    assert len(beside) == 4
    for each in beside:
        assert each.shape is not None
        assert set(each.newest or ()) <= set(each.shape.column_names)
        # Somebody says what is newest of it.
        fed = [one for one in registry.streams() if {t.qualified for t in one.tables} & set(each.made_from)]
        assert fed


def test_every_release_says_who_may_see_it_under_which_terms_and_how_long_it_is_kept() -> None:
    for each in RELEASES:
        assert each.title
        assert each.terms.note
        assert each.retention
        assert each.visibility == "private" or (each.terms.source and each.terms.read_on)
        assert re.fullmatch(r"[a-z]+(/[A-Za-z0-9_]+){0,2}", each.name)
        assert not each.calendar or each.cut == "month"
    restricted = [each for each in RELEASES if each.name.startswith(("krx/", "finra/", "metadata/corpList"))]
    assert len(restricted) >= 5
    for each in restricted:
        assert each.visibility == "private"
        assert "redistribution" in each.terms.note


def test_a_release_from_a_view_says_what_that_is_made_from_and_has_its_shape() -> None:
    with pytest.raises(ReleaseError, match="reads a view"):
        Release("a/b", "t", "s.v", "a/b.parquet", "whole", Terms(""), made_from=("s.t",))
    with pytest.raises(ReleaseError, match="reads a view"):
        Release("a/b", "t", "s.v", "a/b.parquet", "whole", Terms(""), shape=SHAPE)
    with pytest.raises(ReleaseError, match="its shape is"):
        Release("a/b", "t", "s.w", "a/b.parquet", "whole", Terms(""), shape=SHAPE, made_from=("s.t",))


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


def test_a_release_by_company_spreads_its_files_over_folders_and_one_that_is_off_is_not_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shape = replace(SHAPE, schema="s", name="v")
    companies = Release(
        "a/b", "t", "s.v", "a/b/{folder}/{company}.parquet", "company", Terms(""), shape=shape, made_from=("s.t",)
    )
    assert companies.part("0000320193").path == "a/b/93/0000320193.parquet"
    assert companies.part("0000320193").company == "0000320193"
    with pytest.raises(ReleaseError, match="a file for each company"):
        companies.part("../x")
    assert companies.marks == ("s.t:company",)
    table = replace(SHAPE, schema="s", name="t")
    monkeypatch.setattr(releases, "RELEASES", (companies,))
    assert fed_by([table]) == ((companies, shape),)
    monkeypatch.setattr(releases, "RELEASES", (replace(companies, is_on=False),))
    assert (fed_by([table]), feeding([table])) == ((), [])
