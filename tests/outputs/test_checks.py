"""What is looked at before a file goes, and what comes of it: by the bytes alone, without a database."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from include.calendars import calendar
from include.outputs import checks
from include.outputs.checks import Facts, Room, judge, read

SEOUL_WEEK = (date(2026, 9, 14), date(2026, 9, 15), date(2026, 9, 16))
COLUMNS = (("day", "date32[day]"), ("code", "string"))
BEFORE = Facts(5_000, 50_000, COLUMNS, sessions=SEOUL_WEEK)
ROOM = Room("krx/prices", 10, 20)
DAYS = calendar("XKRX", {SEOUL_WEEK[2]: True})


@pytest.mark.parametrize(
    ("facts", "room", "unbuilt", "failed", "holds"),
    [
        (Facts(5_000, 50_000, COLUMNS, sessions=SEOUL_WEEK), ROOM, (), set(), False),
        (Facts(3_999, 40_000, COLUMNS, sessions=SEOUL_WEEK), ROOM, (), {"rows"}, True),
        (Facts(4_000, 40_000, COLUMNS, sessions=SEOUL_WEEK), ROOM, (), set(), False),
        (Facts(0, 400, COLUMNS, sessions=()), ROOM, (), {"rows", "dates"}, True),
        (Facts(200_000, 2_000_000, COLUMNS, sessions=SEOUL_WEEK), ROOM, (), {"rows"}, False),
        (Facts(5_000, 9_000, COLUMNS, sessions=SEOUL_WEEK), ROOM, (), {"size"}, True),
        (Facts(5_000, 900_000, COLUMNS, sessions=SEOUL_WEEK), ROOM, (), {"size"}, True),
        (Facts(5_000, 50_000, COLUMNS[:1], sessions=SEOUL_WEEK), ROOM, (), {"schema"}, True),
        (Facts(5_000, 50_000, (COLUMNS[0], ("code", "int64")), sessions=SEOUL_WEEK), ROOM, (), {"schema"}, True),
        (Facts(5_000, 50_000, (*COLUMNS, ("new", "string")), sessions=SEOUL_WEEK), ROOM, (), {"schema"}, False),
        (Facts(5_000, 50_000, COLUMNS, 1, 0, SEOUL_WEEK), ROOM, (), {"duplicate_key"}, True),
        (Facts(5_000, 50_000, COLUMNS, 0, 1, SEOUL_WEEK), ROOM, (), {"duplicate_key"}, True),
        (Facts(5_000, 50_000, COLUMNS, sessions=SEOUL_WEEK[:2]), ROOM, (), {"dates"}, True),
        (
            Facts(5_000, 50_000, COLUMNS, sessions=(*SEOUL_WEEK, date(2026, 9, 21))),
            ROOM,
            (),
            {"dates"},
            False,
        ),
        (Facts(5_000, 50_000, COLUMNS, sessions=SEOUL_WEEK), Room("x", 10_000, 20), (), {"entries"}, True),
        (Facts(5_000, 50_000, COLUMNS, sessions=SEOUL_WEEK), Room("x", 10, 100_000), (), {"entries"}, True),
        (Facts(5_000, 50_000, COLUMNS, sessions=SEOUL_WEEK), ROOM, ("2026-08",), {"missing_file"}, False),
    ],
)
def test_each_check_says_what_differs_and_whether_the_file_is_held(
    facts: Facts, room: Room, unbuilt: tuple[str, ...], failed: set[str], holds: bool
) -> None:
    made = judge(facts, BEFORE, days=DAYS, room=room, unbuilt=unbuilt)
    assert {one.name for one in made} == {
        "missing_file", "rows", "size", "schema", "duplicate_key", "dates", "entries",
    }  # fmt: skip
    assert {one.name for one in made if not one.passed} == failed
    assert any(one.holds for one in made) == holds
    assert all(one.words for one in made)


def test_the_first_file_of_a_path_is_held_by_nothing_but_itself() -> None:
    made = judge(Facts(1, 900, COLUMNS, sessions=SEOUL_WEEK[:1]), None, days=DAYS, room=ROOM)
    assert all(one.passed for one in made)
    made = judge(Facts(2, 900, COLUMNS, 1, sessions=SEOUL_WEEK[:1]), None, days=DAYS, room=ROOM)
    assert [one.name for one in made if one.holds] == ["duplicate_key"]


def test_a_hole_in_the_sessions_is_named_by_its_day_and_an_operators_word_on_the_calendar_counts() -> None:
    facts = Facts(9, 900, COLUMNS, sessions=(SEOUL_WEEK[0], SEOUL_WEEK[2]))
    (dates,) = (one for one in judge(facts, None, days=calendar("XKRX"), room=ROOM) if one.name == "dates")
    assert dates.numbers["holes"] == ["2026-09-15"]
    closed = calendar("XKRX", {SEOUL_WEEK[1]: False})
    (dates,) = (one for one in judge(facts, None, days=closed, room=ROOM) if one.name == "dates")
    assert dates.passed


def test_what_is_judged_is_read_from_the_bytes_over_row_groups_and_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checks, "ROWS_PER_GROUP", 4)
    days = [date(2026, 9, 1) + timedelta(days=n // 3) for n in range(12)]
    codes = ["A", "가", "B"] * 4  # the second comes after the third by its bytes
    codes[3:6] = ["A", "A", "B"]
    about = {"key": "day,code", "session_date": "day"}
    schema = pa.schema([pa.field("day", pa.date32()), pa.field("code", pa.string())], about)
    file = tmp_path / "a.parquet"
    pq.write_table(pa.table([days, codes], schema=schema), file, row_group_size=5)
    facts = read(file, by_session=True)
    assert (facts.rows, facts.duplicates, facts.disorder) == (12, 1, 3)
    assert facts.columns == COLUMNS
    assert facts.sessions == tuple(sorted(set(days)))
    assert read(file, by_session=False).sessions is None


def test_what_is_no_parquet_file_is_told_in_a_line(tmp_path: Path) -> None:
    file = tmp_path / "a.parquet"
    file.write_bytes(b"PAR1 and then nothing of the kind")
    with pytest.raises(checks.NotParquet, match="it cannot be read") as told:
        read(file, by_session=True)
    assert "\n" not in str(told.value)
