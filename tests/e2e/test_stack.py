"""The real stack once: Airflow, PostgreSQL, the sandbox and the Hub's own client, from trigger to parquet."""

from __future__ import annotations

import io
import json
from decimal import Decimal
from pathlib import Path

import httpx
import pyarrow.parquet as pq
import pytest
import zstandard

from tests.e2e.conftest import ADMIN_KEY, RealStack

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

DAY = "2026-09-15"


def hub_file(stack: RealStack, path: str) -> bytes:
    """Download a published file with the Hub's own client, past every cache."""
    from include.outputs.hub import download, hub

    connection = next(iter(stack.rows("select repository from publish.commits order by commit_id desc limit 1")))
    namespace, repository = connection["repository"].split("/")
    return download(hub(stack.sandbox, "sandbox-token", namespace, repository), path)


def published(stack: RealStack) -> bool:
    """Say whether nothing of FINRA's waits to be built or sent any more; the others' windows open by the real clock."""
    (row,) = stack.rows(
        "select (select count(*) from publish.behind where table_name = 'market.finra_short_volume')"
        " + (select count(*) from publish.files where state = 'waiting' and release = 'finra/short_volume') as n"
    )
    return row["n"] == 0


def test_a_poll_over_rest_brings_what_the_upstream_published(stack: RealStack) -> None:
    run = stack.finished("finra", stack.trigger("finra"))
    assert run["state"] == "success"
    stack.eventually(
        lambda: stack.rows(
            "select 1 from collect.cycles"
            " where stream = 'finra.short_volume' and mode = 'poll' and cycle_status = 'SUCCESS'"
        ),
        "the window to be done",
    )
    for facility in ("CNMS", "FORF"):
        address = f"{stack.sandbox}/cdn.finra.org/equity/regsho/daily/{facility}shvol{DAY.replace('-', '')}.txt"
        lines = httpx.get(address).text.split("\r\n")
        given = {line.split("|")[1]: line.split("|")[2:5] for line in lines[1:-2]}
        rows = stack.rows(
            "select symbol, short_volume, short_exempt_volume, total_volume from market.finra_short_volume"
            " where session_date = %s and facility = %s",
            DAY, facility,
        )  # fmt: skip
        held = {row["symbol"]: [row["short_volume"], row["short_exempt_volume"], row["total_volume"]] for row in rows}
        assert held == {symbol: [Decimal(value) for value in values] for symbol, values in given.items()}


def test_the_file_on_the_hub_holds_the_rows_of_the_table(stack: RealStack) -> None:
    stack.eventually(lambda: published(stack), "FINRA's file to be published")
    table = pq.read_table(io.BytesIO(hub_file(stack, "finra/short_volume/2026-09.parquet")))
    rows = stack.rows(
        "select session_date, facility, symbol, short_volume, total_volume from market.finra_short_volume"
        " where session_date >= date '2026-09-01'"
        ' order by session_date, facility collate "C", symbol collate "C"'
    )
    names = ["session_date", "facility", "symbol", "short_volume", "total_volume"]
    assert table.select(names).to_pylist() == rows


def test_a_run_that_changes_nothing_publishes_nothing(stack: RealStack) -> None:
    """Of FINRA: the other sources' windows open by the real clock meanwhile, and publish as they please."""
    commits = stack.rows("select count(*) as n from publish.commits where release = 'finra/short_volume'")
    stack.finished("finra", stack.trigger("finra"))
    stack.eventually(lambda: published(stack), "FINRA's file to be published")
    after = stack.rows("select count(*) as n from publish.commits where release = 'finra/short_volume'")
    assert after == commits


def test_a_backfill_triggered_on_the_command_line_fills_the_range_and_skips_the_holiday(stack: RealStack) -> None:
    conf = {"mode": "backfill", "start_date": "2026-09-04", "end_date": "2026-09-08", "run_id": "over-labor-day"}
    done = stack.run(
        "airflow", "--demo", "dags", "trigger", "finra", "--run-id", "cli-backfill", "--conf", json.dumps(conf)
    )
    assert done.returncode == 0, done.stdout + done.stderr
    run = stack.finished("finra", "cli-backfill")
    assert run["state"] == "success", run
    days = stack.rows(
        "select distinct session_date::text as day from market.finra_short_volume"
        " where session_date between date '2026-09-04' and date '2026-09-08' order by 1"
    )
    assert [row["day"] for row in days] == ["2026-09-04", "2026-09-08"]
    (job,) = stack.rows("select outcome from collect.job_runs where run_id = 'over-labor-day'")
    assert job["outcome"] in ("success", "partial")


def test_a_replay_changes_nothing_where_nothing_changed(stack: RealStack) -> None:
    before = stack.rows("select xmin::text, * from market.finra_short_volume order by session_date, facility, symbol")
    run = stack.finished(
        "finra",
        stack.trigger("finra", mode="replay", start_date="2026-09-04", end_date=DAY, reason="nothing should change"),
    )
    assert run["state"] == "success", run
    after = stack.rows("select xmin::text, * from market.finra_short_volume order by session_date, facility, symbol")
    assert after == before


@pytest.mark.parametrize(
    ("conf", "word"),
    [
        ({"modee": "replay"}, "modee"),
        ({"mode": "backfill"}, "start_date"),
        ({"mode": "backfill", "start_date": "2026-09-08", "end_date": "2026-09-04"}, "before"),
        ({"mode": "replay", "start_date": "2026-09-04", "end_date": "2026-09-08"}, "reason"),
    ],
)
def test_a_bad_request_is_refused_in_words_by_the_first_task(
    stack: RealStack, conf: dict[str, object], word: str
) -> None:
    run_id = stack.trigger("finra", **conf)
    run = stack.finished("finra", run_id)
    tasks = stack.tasks("finra", run_id)
    assert run["state"] == "failed"
    assert tasks["check_request"]["state"] == "failed"
    assert tasks["check_request"]["try_number"] == 1
    assert word in (tasks["check_request"]["note"] or "")


def test_no_secret_is_in_a_log_a_table_or_a_raw_object(stack: RealStack) -> None:
    secrets = json.loads((stack.directory / "secrets.json").read_text())
    passwords = json.loads((stack.directory / "passwords.json").read_text())
    markers = [str(value) for value in [*secrets.values(), *passwords.values()]]
    markers += ["sandbox-key", "sandbox-token", ADMIN_KEY]
    kept = {"secrets.json", "passwords.json"}
    found = []
    for path in stack.directory.rglob("*"):
        if path.is_file() and path.name not in kept and "postgres" not in path.relative_to(stack.directory).parts:
            text = path.read_bytes()
            if path.suffix == ".zst":
                text = zstandard.ZstdDecompressor().decompressobj().decompress(text)

            found += [(str(path), marker) for marker in markers if marker.encode() in text]
    assert not found
    for database in (stack.warehouse, stack.metadata):
        assert not _in_database(stack, database, markers)
        assert _in_database(stack, database, ["finra"])


def _in_database(stack: RealStack, url: str, markers: list[str]) -> list[tuple[str, str]]:
    tables = stack.rows(
        "select format('%%I.%%I', table_schema, table_name) as name from information_schema.tables"
        " where table_type = 'BASE TABLE' and table_schema not in ('pg_catalog', 'information_schema')",
        database=url,
    )
    looks = [f"select '{table['name']}' as place, r::text as row from {table['name']} r" for table in tables]
    found = stack.rows(
        f"select distinct l.place, m.marker from ({' union all '.join(looks)}) l"
        " join unnest(%s::text[]) m (marker) on position(m.marker in l.row) > 0",
        markers,
        database=url,
    )
    return [(row["place"], row["marker"]) for row in found]


def test_the_operations_api_answers_those_who_are_logged_in_and_nobody_else(stack: RealStack) -> None:
    anonymous = httpx.get(f"{stack.airflow.url}/daybook/v1/streams")
    assert anonymous.status_code == 401
    password = json.loads((Path(stack.directory) / "passwords.json").read_text())["viewer"]
    token = httpx.post(f"{stack.airflow.url}/auth/token", json={"username": "viewer", "password": password}).json()[
        "access_token"
    ]
    answer = httpx.get(f"{stack.airflow.url}/daybook/v1/streams", headers={"Authorization": f"Bearer {token}"})
    assert answer.status_code == 200
    assert [stream["stream"] for stream in answer.json()].count("finra.short_volume") == 1
