"""FINRA's daily files, as they have been over the years and as they go wrong."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from dataclasses import replace
from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from include.contract import AnswerClass, Ask, Mode, Parsed, ParseError
from include.settings import ROOT
from include.sources.finra import daily_file
from include.sources.finra.streams import FACILITIES, SHORT_VOLUME_STREAM, file_request
from include.sources.finra.tables import SHORT_VOLUME
from tests.sources.answers import FIXTURES, answer, unit_of

DAY = date(2026, 5, 15)
COLUMNS = SHORT_VOLUME.column_names


def read(body: bytes, facility: str = "CNMS", day: date = DAY) -> Parsed:
    return daily_file.parse(unit_of(file_request(facility, day), body))


def rows_of(parsed: Parsed) -> list[dict[str, Any]]:
    return [dict(zip((*COLUMNS, "extra"), row, strict=True)) for row in parsed.batches[0].rows]


def fixture(name: str) -> bytes:
    return (FIXTURES / "finra" / name).read_bytes()


# --- the inputs worth having, one by one


def test_a_normal_file_is_read_exactly() -> None:
    rows = rows_of(read(fixture("normal.txt")))
    assert rows[0] == {
        "session_date": DAY,
        "facility": "CNMS",
        "symbol": "ABR",
        "short_volume": Decimal(1200),
        "short_exempt_volume": Decimal(0),
        "total_volume": Decimal("3400.5"),
        "market": "B,Q,N",
        "extra": None,
    }
    assert str(rows[2]["short_volume"]) == "301.25"


def test_symbols_keep_their_case_and_are_never_taken_for_words() -> None:
    symbols = [row["symbol"] for row in rows_of(read(fixture("normal.txt")))]
    assert symbols == ["ABR", "ABRpD", "BRK/B", "NA", "NULL", "TRUE", "XYZw"]
    assert all(type(symbol) is str for symbol in symbols)


def test_a_trailer_that_is_off_by_one_refuses_the_file() -> None:
    with pytest.raises(ParseError, match="the trailer says 3 rows, the file has 2: it was cut"):
        read(fixture("trailer_off.txt"))


@pytest.mark.parametrize("name", ["no_trailer.txt", "cut.txt"])
def test_a_file_without_its_trailer_was_cut(name: str) -> None:
    with pytest.raises(ParseError, match="the file was cut"):
        read(fixture(name))


@pytest.mark.parametrize("length", [0, 1, 30, 61, 62, 63, 80, 100, 150, 200, 250])
def test_a_file_that_is_cut_anywhere_is_refused_or_no_data(length: int) -> None:
    body = fixture("normal.txt")[:length]
    if daily_file.classify(answer(file_request("CNMS", DAY), body)) is AnswerClass.ERROR:
        return
    with pytest.raises(ParseError):
        read(body)


def test_no_proper_beginning_of_a_file_is_ever_read_as_a_whole_one() -> None:
    """Every single length: a shorter file never gives rows, unless only its last line end is missing."""
    body = fixture("decimals.txt")
    for length in range(len(body)):
        part = body[:length]
        try:
            parsed = read(part)
        except ParseError:
            continue
        assert part.rstrip() == body.rstrip() or rows_of(parsed) == [], part[-40:]


def test_the_65_bytes_of_an_empty_day_are_an_answer_without_rows() -> None:
    body = fixture("empty_day.txt")
    assert len(body) == 65
    assert daily_file.classify(answer(file_request("FNRA", DAY), body)) is AnswerClass.EMPTY
    assert rows_of(read(body, "FNRA")) == []


def test_before_2011_there_was_no_exempt_column() -> None:
    rows = rows_of(read(fixture("five_columns.txt"), "FNSQ", date(2010, 5, 7)))
    assert [row["short_exempt_volume"] for row in rows] == [None, None]
    with pytest.raises(ParseError, match="the header lacks short_exempt_volume"):
        read(fixture("five_columns.txt"), "FNSQ", date(2011, 2, 28))
    assert rows_of(read(fixture("five_columns.txt"), "FNSQ", date(2011, 2, 25)))


def test_decimals_are_exact_to_the_sixth_place() -> None:
    first, second = rows_of(read(fixture("decimals.txt")))
    assert first["short_volume"] == Decimal("17705180.795191")
    assert str(second["short_volume"]) == "7270.000000"
    assert second["total_volume"] - second["short_volume"] == Decimal("0.000001")
    assert all(isinstance(value, Decimal) for name, value in first.items() if name.endswith("volume"))


def test_a_saved_403_is_never_data_whatever_its_status() -> None:
    body = fixture("access_denied.xml")
    request = file_request("CNMS", DAY)
    for status in (200, 403, 404, 500):
        assert daily_file.classify(answer(request, body, status)) not in (AnswerClass.DATA, AnswerClass.EMPTY)
    with pytest.raises(ParseError, match="the header lacks"):
        read(body)


def test_the_same_day_with_other_content_is_another_reading() -> None:
    body = fixture("normal.txt")
    other = body.replace(b"|1200|", b"|1201|")
    assert rows_of(read(body))[0]["short_volume"] + 1 == rows_of(read(other))[0]["short_volume"]
    assert rows_of(read(body))[1:] == rows_of(read(other))[1:]


def test_a_comma_within_the_market_survives_a_csv_round_trip() -> None:
    markets = [row["market"] for row in rows_of(read(fixture("normal.txt")))]
    text = io.StringIO()
    csv.writer(text).writerow(markets)
    assert next(csv.reader([text.getvalue()])) == markets
    assert markets[0] == "B,Q,N"


def test_both_line_ends_are_read_alike() -> None:
    body = fixture("normal.txt")
    assert rows_of(read(body)) == rows_of(read(body.replace(b"\r\n", b"\n")))
    assert len(rows_of(read(fixture("line_feeds.txt")))) == 1
    assert rows_of(read(body.removesuffix(b"\r\n"))) == rows_of(read(body))


# --- more that files have done


def test_the_header_has_had_other_spellings() -> None:
    (row,) = rows_of(read(fixture("other_spelling.txt"), "FNQC", date(2019, 4, 18)))
    assert (row["symbol"], row["short_volume"], row["market"], row["extra"]) == ("ABR", Decimal(30), "B", None)


def test_the_trailer_of_an_old_file_is_no_count_of_rows() -> None:
    assert len(rows_of(read(fixture("old_trailer.txt"), "FNYX", date(2019, 2, 28)))) == 2


def test_bad_rows_are_named_with_line_reason_and_text() -> None:
    parsed = read(fixture("row_defects.txt"))
    assert [row["symbol"] for row in rows_of(parsed)] == ["ABR", ""]
    assert [(each.position, each.reason) for each in parsed.rejected] == [
        ("line 3", "5 fields where the header has 6"),
        ("line 4", "short_volume is 'many', which is not a volume"),
        ("line 5", "'2026-05-15' is not a date"),
        ("line 6", "short_volume is '1.1234567', which is not a volume"),
    ]
    assert parsed.rejected[0].text == "20260515|BAD|1|0|2"


@pytest.mark.parametrize(
    "volume", ["-1", "+1", "1e3", "1,000", "NaN", "inf", "0x10", "", " ", ".", "1.0000000", "1" * 15, "１２"]
)
def test_what_is_not_a_volume_is_no_volume(volume: str) -> None:
    body = f"Date|Symbol|ShortVolume|ShortExemptVolume|TotalVolume|Market\r\n20260515|A|{volume}|0|9|Q\r\n1\r\n"
    parsed = read(body.encode())
    assert rows_of(parsed) == []
    assert len(parsed.rejected) == 1


@pytest.mark.parametrize("volume", ["0", "7", "007", "1.", ".5", "12345678901234.123456", " 7 "])
def test_what_is_a_volume_is_kept_as_it_stands(volume: str) -> None:
    body = f"Date|Symbol|ShortVolume|ShortExemptVolume|TotalVolume|Market\r\n20260515|A|{volume}|0|9|Q\r\n1\r\n"
    (row,) = rows_of(read(body.encode()))
    assert row["short_volume"] == Decimal(volume.strip())


@pytest.mark.parametrize("market", ["", "20260515", "-5", "B,", "B Q"])
def test_what_names_no_facility_is_no_market(market: str) -> None:
    body = f"Date|Symbol|ShortVolume|ShortExemptVolume|TotalVolume|Market\r\n20260515|A|1|0|9|{market}\r\n1\r\n"
    parsed = read(body.encode())
    assert (rows_of(parsed), len(parsed.rejected)) == ([], 1)


@pytest.mark.parametrize("end", [b"", b"201", b"20190228", b"\r\n5\r\n"])
def test_an_old_file_that_was_cut_takes_no_row_away(end: bytes) -> None:
    header, row = b"Date|Symbol|ShortVolume|ShortExemptVolume|TotalVolume|Market", b"20190228|A|1|0|9|N\r\n"
    with pytest.raises(ParseError, match="the file was cut"):
        read(header + (end if end[-1:] == b"\n" or not end else b"\r\n" + row + end), "FNYX", date(2019, 2, 28))
    assert daily_file.classify(answer(file_request("FNYX", DAY), b"hello\r\n0\r\n")) is AnswerClass.DATA


def test_a_file_of_which_no_row_can_be_read_is_refused_once_and_not_row_by_row() -> None:
    rows = "".join(f"20260515|A{n}|1|0|9|Q|\n" for n in range(daily_file.MOST_REJECTED + 1))
    body = f"Date|Symbol|ShortVolume|ShortExemptVolume|TotalVolume|Market\n{rows}{daily_file.MOST_REJECTED + 1}\n"
    with pytest.raises(ParseError, match="none of its 201 rows can be read; the first, line 2: 7 fields"):
        read(body.encode())


def test_unknown_columns_are_kept_and_reported() -> None:
    parsed = read(fixture("one_column_more.txt"))
    assert parsed.unknown_columns == ("Venue",)
    assert rows_of(parsed)[0]["extra"] == {"Venue": "X7"}


def test_a_byte_order_mark_and_blank_lines_do_no_harm() -> None:
    body = fixture("normal.txt")
    assert rows_of(read(b"\xef\xbb\xbf" + body + b"\r\n\r\n")) == rows_of(read(body))


@pytest.mark.parametrize("body", [b"\r\n\r\n", b"12217\r\n", b"hello\r\n"])
def test_what_has_no_header_is_refused(body: bytes) -> None:
    with pytest.raises(ParseError):
        read(body)


def test_a_header_that_names_a_column_twice_is_refused() -> None:
    body = b"Date|Symbol|ShortVolume|Short Volume|ShortExemptVolume|TotalVolume|Market\r\n0\r\n"
    with pytest.raises(ParseError, match="names a column twice"):
        read(body)


# --- five kinds of answers


def test_five_kinds_of_answers_are_told_apart_by_the_calendar_and_the_body() -> None:
    denied, page = fixture("access_denied.xml"), fixture("block_page.html")
    session, holiday = file_request("CNMS", DAY), file_request("CNMS", date(2026, 5, 25), is_session=False)
    before = file_request("FNQC", date(2018, 9, 7))
    told = {
        "a file": daily_file.classify(answer(session, fixture("normal.txt"))),
        "a file without rows": daily_file.classify(answer(session, fixture("empty_day.txt"))),
        "not yet": daily_file.classify(answer(session, denied, 403)),
        "not yet, other path": daily_file.classify(answer(session, b"", 404)),
        "no file on a closed day": daily_file.classify(answer(holiday, denied, 403)),
        "no file before its history": daily_file.classify(answer(before, denied, 403)),
        "blocked": daily_file.classify(answer(session, page, 403)),
        "blocked with 200": daily_file.classify(answer(session, page, 200)),
        "unchanged": daily_file.classify(answer(session, b"", 304)),
        "broken": daily_file.classify(answer(session, b"oops", 500)),
        "nothing at all": daily_file.classify(answer(session, b"", 200)),
        "too many": daily_file.classify(answer(session, b"", 429)),
    }
    assert told == {
        "a file": AnswerClass.DATA,
        "a file without rows": AnswerClass.EMPTY,
        "not yet": AnswerClass.NOT_YET,
        "not yet, other path": AnswerClass.NOT_YET,
        "no file on a closed day": AnswerClass.ABSENT,
        "no file before its history": AnswerClass.ABSENT,
        "blocked": AnswerClass.BLOCKED,
        "blocked with 200": AnswerClass.BLOCKED,
        "unchanged": AnswerClass.UNCHANGED,
        "broken": AnswerClass.ERROR,
        "nothing at all": AnswerClass.ERROR,
        "too many": AnswerClass.ERROR,
    }


def test_only_the_beginning_of_an_answer_is_looked_at_to_tell_its_class() -> None:
    body = fixture("normal.txt") + b"x" * 10_000_000
    opened = answer(file_request("CNMS", DAY), body)

    class Counting(io.BytesIO):
        taken = 0

        def read(self, size: int | None = -1) -> bytes:
            assert size is not None
            assert 0 < size <= 65_536
            return super().read(size)

    class Body:
        def open(self) -> Any:
            return Counting(body)

        def read(self) -> bytes:
            raise AssertionError("read whole")

    assert daily_file.classify(replace(opened, body=Body())) is AnswerClass.DATA


# --- what is asked


def test_every_facility_is_asked_for_from_its_first_day_on() -> None:
    def asked(day: date) -> list[str]:
        return [request.key[:4] for request in SHORT_VOLUME_STREAM.plan(Ask(Mode.BACKFILL, sessions=(day,)))]

    assert asked(date(2026, 5, 15)) == list(FACILITIES)
    assert asked(date(2018, 8, 1)) == ["CNMS", "FNSQ", "FNYX", "FNRA", "FORF"]
    assert asked(date(2018, 7, 31)) == ["FNSQ", "FNYX", "FNRA", "FORF"]


def test_the_adf_file_alone_is_not_required() -> None:
    requests = list(SHORT_VOLUME_STREAM.plan(Ask(Mode.POLL, sessions=(DAY,))))
    assert [request.key for request in requests if not request.required] == ["FNRA/2026-05-15"]


def test_a_file_is_asked_for_at_its_address() -> None:
    assert file_request("CNMS", DAY).url == "https://cdn.finra.org/equity/regsho/daily/CNMSshvol20260515.txt"


# --- recorded files, against their right reading


SAMPLES = ROOT.parent / "shared" / "upstream" / "samples"


def samples() -> list[dict[str, str]]:
    manifest = SAMPLES / "MANIFEST.tsv"
    if not manifest.exists():
        return []
    with manifest.open(encoding="utf-8", newline="") as lines:
        listed = csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
        return [row for row in listed if row["source"] == "finra" and row["file"].endswith(".txt")]


LISTED = samples()


@pytest.mark.skipif(not LISTED, reason="the recorded samples are not beside this checkout")
@pytest.mark.parametrize("sample", LISTED, ids=[row["file"] for row in LISTED] or None)
def test_a_recorded_file_is_read_as_its_manifest_says(sample: dict[str, str]) -> None:
    path, right = SAMPLES / sample["file"], json.loads(sample["right_reading"])
    body = path.read_bytes()
    assert hashlib.sha256(body).hexdigest() == sample["sha256"]
    assert body.count(b"\r\n") > 0 if right["eol"] == "CRLF" else b"\r" not in body
    facility, stamp = path.name[:4], path.name[9:17]
    day = date(int(stamp[:4]), int(stamp[4:6]), int(stamp[6:])) if stamp.isdigit() else None
    request = replace(file_request(facility, day or DAY), session_date=day)

    expected = AnswerClass.EMPTY if right["rows"] == 0 else AnswerClass.DATA
    assert daily_file.classify(answer(request, body)) is expected
    if right["trailer_equals_rows"] is False and (day or DAY) >= daily_file.TRAILER_IS_ROW_COUNT_SINCE:
        with pytest.raises(ParseError, match=f"the trailer says {right['trailer']} rows, the file has {right['rows']}"):
            daily_file.parse(unit_of(request, body))
        return
    if right["trailer"] is None and day is not None:
        # Its authors cut it: as it stands it is refused, and with a trailer it is read.
        with pytest.raises(ParseError, match=f"no trailer after {right['rows']} rows"):
            daily_file.parse(unit_of(request, body))
        body += f"{right['rows']}\r\n".encode()
    parsed = daily_file.parse(unit_of(request, body))
    rows = rows_of(parsed)
    assert len(rows) + len(parsed.rejected) == right["rows"]
    for bad in right["bad_rows"]:
        assert bad in [each.text for each in parsed.rejected]
    if "first" in right:
        first = next(csv.reader([right["first"][0]]))[0]
        assert f"{rows[0]['session_date']:%Y%m%d}" == first
        assert [rows[0]["symbol"], rows[0]["market"]] == [right["first"][1], right["first"][-1]]
        assert [rows[-1]["symbol"], rows[-1]["market"]] == [right["last"][1], right["last"][-1]]
        written = [str(rows[0][name]) for name in ("short_volume", "short_exempt_volume", "total_volume")]
        assert written == right["first"][2:5]
    if "sum_short" in right:
        assert sum(row["short_volume"] for row in rows) == Decimal(right["sum_short"])
        assert sum(row["total_volume"] for row in rows) == Decimal(right["sum_total"])
        assert sum("." in str(row["short_volume"]) for row in rows) == right["fractional"]
