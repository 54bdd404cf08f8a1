"""Each example runs as a program of its own, says the numbers that are held, draws them, and says what it lacks."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from types import ModuleType

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from examples import filings_of_a_day, reach, restated, short_share, vintages
from include import registry, settings
from include.outputs import releases
from include.outputs.hub import Hub
from include.outputs.outbox import build
from include.outputs.publisher import publish
from include.sandbox.server import serve
from include.settings import Serving
from tests.fixtures_sandbox import RunningSandbox, Start
from tests.outputs.publishing import QUICK, REPOSITORY, TOKEN
from tests.sources.rows import Warehouse, opened

CAN_DRAW = importlib.util.find_spec("matplotlib") is not None
TABLES = {table.qualified: table for stream in registry.streams() for table in stream.tables}


@dataclass(frozen=True)
class Ran:
    """What a program wrote, and the picture that it was told to make."""

    code: int
    out: str
    err: str
    picture: Path

    def drew(self) -> bool:
        """Whether it ended well with a picture; where matplotlib is not installed it says what to install."""
        if CAN_DRAW:
            return self.code == 0 and self.picture.read_bytes().startswith(b"\x89PNG") and not self.err
        return self.code == 1 and "install matplotlib" in self.err and not self.picture.exists()

    def line(self, begin: str) -> list[str]:
        """The words of the line that begins so."""
        (found,) = [line for line in self.out.splitlines() if line.startswith(begin)]
        return found.split()


@dataclass(frozen=True)
class Desk:
    """Where an analyst sits: a warehouse, a Hub with what is published, and programs to run."""

    url: str
    rows: Warehouse
    sandbox: RunningSandbox
    folder: Path

    def publish(self, *names: str) -> None:
        """Build releases from the rows that are held and send them to the Hub."""
        for name in names:
            release = releases.release(name)
            for table in release.marks:
                self.rows.ask("insert into publish.stale values (%s, '2026-09', 1, collect.clock()) returning 1", table)
            shape = release.shape or TABLES[release.table]
            build(self.url, release, shape, str(self.folder / "outbox"), "a run")
        publish(self.url, Hub(self.sandbox.hub_url, TOKEN, REPOSITORY), str(self.folder / "outbox"), "me", pace=QUICK)

    def run(self, name: str, *arguments: str) -> Ran:
        """Run an example as a program."""
        picture = self.folder / f"{name}.png"
        command = [sys.executable, "-m", f"examples.{name}", *arguments, "--picture", str(picture)]
        ran = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=120, check=False)
        return Ran(ran.returncode, ran.stdout, ran.stderr, picture)

    def refusal(self, example: ModuleType, *arguments: str, **environment: str) -> str:
        """What an example says that ends without a picture; run in this process, which is quicker."""
        picture = self.folder / "none.png"
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "argv", [example.__name__, *arguments, "--picture", str(picture)])
            for name, value in environment.items():
                patch.setenv(name, value)
            with pytest.raises(reach.Nothing) as said:
                example.main()
        assert not picture.exists()
        return str(said.value)


@pytest.fixture
def desk(database: str, sandbox: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    here = sandbox()
    hub = {"host": here.hub_url, "password": TOKEN, "extra": {"namespace": REPOSITORY.partition("/")[0]}}
    for name, value in {
        "AIRFLOW_CONN_HUGGINGFACE": json.dumps({"conn_type": "http", **hub}),
        "AIRFLOW_CONN_WAREHOUSE": database,
        "PYTHONPATH": str(settings.ROOT),
        "MPLCONFIGDIR": str(tmp_path / "matplotlib"),
    }.items():
        monkeypatch.setenv(name, value)
    with opened(database) as rows:
        yield Desk(database, rows, here, tmp_path)


@contextmanager
def api_of(desk: Desk, serving: Serving) -> Iterator[str]:
    """The API where Airflow mounts it, on a port of its own."""
    from include.ops.api.app import create_app

    app = create_app(lambda: desk.url, list, serving)
    with serve(Starlette(routes=[Mount("/daybook", app)])) as running:
        yield running.url
    app.state.warehouse.close()


def test_closes_and_short_shares_are_those_of_the_published_files_and_feeds_are_not_mixed(desk: Desk) -> None:
    desk.rows.ask("select collect.ensure_month('market', 'alpaca_daily_bars', '2026-09-01')")
    same = {"timeframe": "1Day", "asof": "-", "volume": 10, "open": 1, "high": 999, "low": 1, "sent_at": "2026-09-03"}
    for day, symbol, feed, adjustment, close in (
        ("2026-09-01", "ABC", "sip", "split", "101.25"),
        ("2026-09-01", "ABC", "sip", "raw", "405"),
        ("2026-09-01", "ABC", "iex", "split", "77"),
        ("2026-09-02", "ABC", "iex", "split", "78"),
        ("2026-09-02", "XYZ", "sip", "split", "55"),
        ("2026-09-03", "ABC", "sip", "split", "102.5"),
    ):
        bar = {"session_date": day, "ts": f"{day}T04:00Z", "symbol": symbol, "feed": feed, "adjustment": adjustment}
        desk.rows.put("market.alpaca_daily_bars", **same, **bar, close=Decimal(close))
    for day, facility, short, total in (
        ("2026-09-01", "CNMS", "30.5", "61"),
        ("2026-09-01", "FNSQ", "1", "61"),
        ("2026-09-02", "CNMS", "1", "3"),
    ):
        volumes = {"short_volume": Decimal(short), "total_volume": Decimal(total), "market": "Q"}
        of = {"session_date": day, "facility": facility, "symbol": "ABC", "sent_at": "2026-09-03"}
        desk.rows.put("market.finra_short_volume", **of, **volumes)
    desk.publish("alpaca/bars/1d", "finra/short_volume")
    ran = desk.run("short_share", "ABC")
    assert ran.drew(), ran
    assert [ran.line(f"2026-09-0{n}") for n in (1, 2, 3)] == [
        ["2026-09-01", "101.25", "0.5000"],
        ["2026-09-02", "–", "0.3333"],
        ["2026-09-03", "102.5", "–"],
    ]
    assert "NOBODY has neither bars nor short volume in 2026-09" in desk.refusal(short_share, "NOBODY")
    assert "2026-08.parquet is not on the Hub" in desk.refusal(short_share, "ABC", "--months", "2026-08")


def test_a_series_is_shown_as_first_published_as_known_on_a_day_and_as_it_stands(desk: Desk) -> None:
    for period, began, value in (
        ("2026-01-01", "2026-02-10", "1400"),
        ("2026-02-01", "2026-03-10", "1500.5"),
        ("2026-02-01", "2026-04-10", "1510"),
        ("2026-02-01", "2026-05-10", "1512.25"),
        ("2026-03-01", "2026-04-10", "1600"),
    ):
        of = {"series_id": "HOUST", "observation_date": period, "realtime_start": began, "is_withdrawn": False}
        desk.rows.put("market.fred_vintages", sent_at="2026-09-01", value_text=value, value=Decimal(value), **of)
    desk.publish("macro/fred/observations")
    ran = desk.run("vintages", "HOUST", "--on", "2026-04-09")
    assert ran.drew(), ran
    assert ran.out.startswith("3 periods, 1 of them revised")
    assert ran.line("2026-02-01") == ["2026-02-01", "1500.5", "1500.5", "1512.25"]
    assert ran.line("2026-03-01") == ["2026-03-01", "1600", "–", "1600"]
    assert "2026-01-01" not in ran.out
    assert vintages.known("HOUST", "fred", date(2026, 4, 10))[date(2026, 2, 1)] == 1510
    assert "Nothing of GDP is in macro/fred/observations" in desk.refusal(vintages, "GDP")
    assert "macro/ecos/observations.parquet is not on the Hub" in desk.refusal(vintages, "X", "--source", "ecos")


def test_a_restated_figure_is_shown_as_known_on_a_day_and_as_it_stands(desk: Desk) -> None:
    same = {"namespace": "http://fasb.org/us-gaap/2025", "concept": "us-gaap:Assets", "entity_scheme": "s"}
    place = {"instance": "i.xml", "context_id": "c", "entity": "0000000007", "is_nil": False, "measure": "USD"}
    for number, (filing, filed, last, value, more) in enumerate(
        (
            ("a-1", "2026-02-03", "2025-12-31", "1000.50", {}),
            ("a-2", "2026-05-05", "2025-12-31", "1001", {}),
            ("a-2", "2026-05-05", "2026-03-31", "1100", {}),
            ("a-2", "2026-05-05", "2026-03-31", "600", {"dimensions": {"axis": "member"}}),
        )
    ):
        period = {"period_type": "instant", "period_end": last, "filed_date": filed, "sent_at": "2026-06-01"}
        numbers = {"value_text": value, "value": Decimal(value), "number": number, "accession": filing}
        desk.rows.put("filings.sec_xbrl_facts", **same, **place, **period, **numbers, **more)
    ran = desk.run("restated", "7", "us-gaap:Assets", "--on", "2026-02-03")
    assert ran.drew(), ran
    assert [ran.line(day) for day in ("2025-12-31", "2026-03-31")] == [
        ["2025-12-31", "–", "1,000.5", "1,001", "a-2"],
        ["2026-03-31", "–", "–", "1,100", "a-2"],
    ]
    assert "No filing of 8 that is held gives us-gaap:Assets in USD" in desk.refusal(restated, "8", "us-gaap:Assets")


def test_filings_of_a_day_come_page_by_page_with_the_models_word_and_what_was_known_then(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = [f"20260916{n:06}" for n in range(1, 62)]
    for at, number in enumerate(numbers):
        of = {"corp_code": "00000007", "corp_name": "가나", "corp_type": "Y", "submitter": "가나", "remark": ""}
        title = {"base_title": "제목", "report_name": "제목", "is_correction": False, "rcept_dt": date(2026, 9, 16)}
        sent = "2026-09-16T02:59" if at < 40 else "2026-09-16T03:01"
        desk.rows.put("dartbrief.disclosures", rcept_no=number, sent_at=sent, **of, **title)
    for number, word in zip(numbers, ("positive", "negative"), strict=False):
        desk.rows.ask(
            "insert into dartbrief.analysis_cache (rcept_no, status, summary, sentiment, key_points_json, model,"
            " prompt_version, created_at, updated_at)"
            " values (%s, 'COMPLETED', '한 줄', %s, '하나', 'm', 'p/1', collect.clock(), collect.clock())"
            " on conflict (rcept_no) do update set status = excluded.status, summary = excluded.summary,"
            " sentiment = excluded.sentiment returning 1",
            number,
            word,
        )
    with api_of(desk, Serving()) as url:
        monkeypatch.setenv("DAYBOOK_API_URL", url)
        ran = desk.run("filings_of_a_day", "--at", "12:00")
        assert "No filing of 2026-09-17 is known here" in desk.refusal(filings_of_a_day, "2026-09-17")
    assert ran.drew(), ran
    assert "61 filings of 2026-09-16, 40 known at 12:00" in ran.out
    assert [ran.line(numbers[n])[1:3] for n in (0, 1, 2, 60)] == [
        ["known", "positive"], ["known", "negative"], ["known", "not"], ["later", "not"],
    ]  # fmt: skip
    assert ran.out.count("한 줄") == 2
    with api_of(desk, Serving(is_public=False)) as url:
        assert "wants a login" in desk.refusal(filings_of_a_day, DAYBOOK_API_URL=url)
    assert "does not answer" in desk.refusal(filings_of_a_day, DAYBOOK_API_URL=url)
    assert "./run python" in desk.refusal(filings_of_a_day, DAYBOOK_API_URL="")


def test_a_script_that_lacks_something_ends_with_a_sentence_and_code_1(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_WAREHOUSE", "")
    with pytest.raises(SystemExit) as ended:
        reach.run(lambda: print(reach.rows("select 1")))
    assert ended.value.code == 1
    out, err = capsys.readouterr()
    assert (out, err.startswith("NOTHING – Connection warehouse is missing: set AIRFLOW_CONN_WAREHOUSE")) == ("", True)
