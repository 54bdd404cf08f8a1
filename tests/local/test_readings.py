"""Recorded answers that no day in their address tells: who would ask for each, and how it is read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from include.local import demo, readings, recorded
from include.local.readings import Reading
from include.settings import ROOT
from tests.sources.answers import FIXTURES

SAMPLES = ROOT.parent / "shared" / "upstream" / "samples"
FRED, ALPACA, KRX = "api.stlouisfed.org", "data.alpaca.markets", "data-dbg.krx.co.kr"


def described(series: str) -> str:
    document = json.loads((FIXTURES / "fred" / "description.json").read_bytes())
    document["seriess"][0]["id"] = series
    return json.dumps(document)


def bars(**more: object) -> str:
    bar = {"t": "2026-08-14T04:00:00Z", "o": 1, "h": 2, "l": 1, "c": 2, "v": 3, "n": 1, "vw": 1.5}
    return json.dumps({"bars": {"GE": [bar], "AAPL": [bar, {**bar, "t": "2026-08-13T04:00:00Z"}]}, **more})


WRAPPED = '{"url":"/","body":{"bars":{},"next_page_token":null}}'
VALUES = (FIXTURES / "fred" / "values.json").read_text(encoding="utf-8")
TRADE, BONDS = ((FIXTURES / "krx" / name).read_text("utf-8") for name in ("trade.json", "indices_of_bonds.json"))
ENTRIES = (
    (FRED, "/fred/series", "series_id=UNRATE", 200, "unrate.json", described("UNRATE")),
    (FRED, "/fred/series/observations", "series_id=GDP&file_type=json", 200, "gdp.json", VALUES),
    (FRED, "/fred/series/observations", "series_id=GDP&output_type=4", 200, "first.json", VALUES),
    (FRED, "/fred/series/search", "search_text=x", 200, "search.json", described("UNRATE")),
    (ALPACA, "/v2/stocks/bars", "symbols=GE,AAPL", 200, "bars.json", bars(next_page_token="abc")),
    (ALPACA, "/v2/stocks/bars", "symbols=AAPL,GE&timeframe=1Day", 200, "cut.json", bars()),
    (ALPACA, "/v2/stocks/bars", "symbols=SPY", 403, "plan.json", '{"message":"no recent SIP data"}'),
    (ALPACA, "/v2/stocks/bars", "symbols=SPY", 200, "wrapped.json", WRAPPED),
    (KRX, "/svc/apis/sto/ksq_bydd_trd", "basDd=20260915", 200, "ksq.json", TRADE),
    (KRX, "/svc/apis/idx/bon_dd_trd", "basDd=20260915", 200, "bonds.json", BONDS),
    (KRX, "/svc/apis/sto/knx_bydd_trd", "basDd=20260914", 200, "other_day.json", TRADE),
    ("example.org", "/x", "", 200, "other.json", "{}"),
)  # fmt: skip


def read(directory: Path, known: set[str] | None = None) -> dict[str, Reading]:
    lines = ["method\thost\tpath\tquery_has\tbody_has\tstatus\tcontent_type\tfile"]
    for host, path, pairs, status, file, body in ENTRIES:
        (directory / file).write_text(body, encoding="utf-8")
        lines.append(f"GET\t{host}\t{path}\t{pairs}\t\t{status}\tapplication/json\t{file}")
    (directory / "recordings.tsv").write_text("\n".join(lines), encoding="utf-8")
    found = readings.read(directory, recorded.read(directory), known or set())
    return {each.recording.file: each for each in found}


def test_who_would_ask_for_an_answer_reads_it_and_what_nobody_asks_for_is_left_out(tmp_path: Path) -> None:
    found = read(tmp_path)
    assert {file: (each.stream.name, each.rows, each.rejected) for file, each in found.items() if not each.refused} == {
        "unrate.json": ("fred.observations", 1, 0),
        "gdp.json": ("fred.observations", 6, 0),
        "bars.json": ("alpaca.bars_1d", 3, 0),
        "wrapped.json": ("alpaca.bars_1d", 0, 0),
        "ksq.json": ("krx.prices", 4, 0),
        "bonds.json": ("krx.indices", 2, 0),
    }
    assert "next_page_token" in found["cut.json"].refused
    assert "ALPACA_PLAN" in found["plan.json"].refused
    assert "is for 20260915 and not for 20260914" in found["other_day.json"].refused
    others = {"cut.json", "plan.json", "other_day.json"}
    assert set(found) == {"unrate.json", "gdp.json", "bars.json", "wrapped.json", "ksq.json", "bonds.json"} | others
    assert set(read(tmp_path, {"gdp.json"})) == set(found) - {"gdp.json"}


def test_a_reading_is_judged_by_the_manifest(tmp_path: Path) -> None:
    found = read(tmp_path)
    manifest = (
        ("bars.json", {"symbols": {"GE": {"bars": 1}, "AAPL": {"bars": 2}}}),
        ("gdp.json", {"rows": 7, "count": 7}),
        ("cut.json", {"rows": 3, "count": 90}),
    )
    lines = ["file\tright_reading", *(f"{file}\t{json.dumps(right)}" for file, right in manifest)]
    (tmp_path / "MANIFEST.tsv").write_text("\n".join(lines), encoding="utf-8")
    right = recorded.right_readings(tmp_path)
    judged = {file: demo._read_line(each, right.get(file)) for file, each in found.items()}
    assert {file for file, line in judged.items() if not line.is_good} == {"gdp.json"}
    assert judged["gdp.json"].cells[2:] == ("6 rows of fred.observations", "7 rows", "WRONG")
    assert judged["cut.json"].cells[3] == "3 rows, its count does not fit"


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="the recorded samples are not beside this checkout")
def test_every_sample_that_is_read_alone_is_read_rightly() -> None:
    recordings, right = recorded.read(SAMPLES), recorded.right_readings(SAMPLES)
    known = {answer.recording.file for answer in recorded.wanted(recordings)}
    lines = [
        demo._read_line(each, right.get(each.recording.file)) for each in readings.read(SAMPLES, recordings, known)
    ]
    assert [line.cells for line in lines if not line.is_good] == []
    assert {"fred", "alpaca"} <= {line.cells[1].partition("/")[0] for line in lines}
