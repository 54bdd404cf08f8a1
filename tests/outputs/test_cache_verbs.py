"""`cache status`, `get` and `repair` as a person types them, and the upstream's own newest item."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from include import caching, cli
from include.local import attach
from include.outputs import cache as caches
from include.outputs import upstream
from include.outputs.hub import Hub
from tests.engine.cdn import PAGE, Cdn, Trouble, serving
from tests.engine.desk import MONDAY, STREAM, TUESDAY, Desk, make, ny
from tests.fixtures_sandbox import RunningSandbox
from tests.outputs.publishing import rows
from tests.outputs.test_cache import asked, month, publish

Cli = Callable[..., tuple[int, str]]
SEPTEMBER = month(9)


def sessions(*days: date) -> bytes:
    """A file of the release with rows of some sessions."""
    sink = pa.BufferOutputStream()
    schema = pa.schema([pa.field("session_date", pa.date32())], {"release": "finra/short_volume"})
    pq.write_table(pa.table({"session_date": list(days)}, schema=schema), sink)
    return sink.getvalue().to_pybytes()


@pytest.fixture
def cdn() -> Iterator[Cdn]:
    with serving() as running:
        yield running


@pytest.fixture
def desk(database: str, cdn: Cdn, tmp_path: Path) -> Desk:
    made = make(database, cdn, tmp_path)
    made.at(ny(TUESDAY))
    return made


@pytest.fixture
def run(hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    """Runs `cache …` as a consumer who has a connection and no warehouse; gives exit code and words."""
    namespace, name = hub.repository.split("/")
    connection = {"conn_type": "http", "host": hub.endpoint, "password": hub.token}
    connection["extra"] = json.dumps({"namespace": namespace, "repository": name})
    monkeypatch.setenv("AIRFLOW_CONN_HUGGINGFACE", json.dumps(connection))
    monkeypatch.setenv("DAYBOOK_CACHE_ROOT", str(tmp_path / "copies"))

    def main(*words: str) -> tuple[int, str]:
        code = cli.main(["cache", *words])
        said = capsys.readouterr()
        assert hub.token not in said.out + said.err
        return code, said.out + said.err

    return main


def test_a_consumer_without_a_warehouse_gets_looks_and_repairs(
    run: Cli, hub: Hub, tmp_path: Path, running: RunningSandbox
) -> None:
    publish(hub, {SEPTEMBER: sessions(MONDAY), month(8): sessions(MONDAY - timedelta(days=30))})
    assert run("status") == (0, f"NOTHING – no copy of all releases is in {tmp_path / 'copies'}. "
                                "Get some: cache get --release NAME\n")  # fmt: skip
    code, said = run("get", "--release", "finra/short_volume")
    assert (code, said.splitlines()[-1]) == (
        0, f"DONE – 2 files downloaded, 0 were as they should be; in {tmp_path / 'copies'}"
    )  # fmt: skip
    asked(running)
    code, said = run("status")
    assert (code, "2 fresh" in said, asked(running)) == (0, True, {})
    (tmp_path / "copies" / SEPTEMBER).write_bytes(b"rotten")
    code, said = run("repair", "--dry-run")
    assert (code, "STALE" in said, "WOULD – 1 of 2 files" in said) == (0, True, True)
    code, said = run("repair", "--release", "finra/short_volume")
    assert (code, "DONE – 1 files downloaded, 1 were as they should be" in said) == (0, True)
    assert run("get", SEPTEMBER, "--mode", "local_only")[0] == 0


def test_what_cannot_be_done_is_said_and_the_exit_code_says_so_too(
    run: Cli, hub: Hub, running: RunningSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.utils._http.time.sleep", lambda seconds: None)
    code, said = run("get", "--release", "finra/short_volume")
    assert (code, said.startswith("FAILED – nothing of finra/short_volume is here")) == (1, True), "no repository"
    publish(hub, {SEPTEMBER: sessions(MONDAY)})
    code, said = run("get", "--release", "krx/prices")
    assert (code, said) == (0, "NOTHING – the Hub has no file of krx/prices.\n"), "an answer, and not the same"
    assert "REFUSED – There is no release 'finra'" in run("repair", "--release", "finra")[1]
    assert run("get")[0] == run("get", SEPTEMBER, "--release", "finra/short_volume")[0] == 1
    assert run("get", "../out")[0] == 1
    assert run("get", "no/such.parquet") [0] == 1  # fmt: skip
    running.fault(match={"host": "huggingface.co"}, n=None, reset=True)
    code, said = run("get", SEPTEMBER)
    assert (code, "may not be used" in said, "no answer" in said) == (1, True, True)
    code, said = run("repair")
    assert (code, said.startswith("FAILED – the Hub: no answer")) == (1, True)
    running.control("DELETE", "faults")
    assert run("get", SEPTEMBER)[0] == 0
    running.fault(match={"host": "huggingface.co"}, n=None, status=503)
    assert run("get", SEPTEMBER)[0] == 0, "the Hub's word of today holds"
    assert run("get", SEPTEMBER, "--mode", "force_check")[0] == 1
    monkeypatch.delenv("AIRFLOW_CONN_HUGGINGFACE")
    assert "REFUSED – Connection huggingface is missing" in run("status")[1]


def test_a_full_disk_is_said_and_what_was_there_stays(
    run: Cli, hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(hub, {SEPTEMBER: sessions(MONDAY)})
    run("get", SEPTEMBER)
    publish(hub, {SEPTEMBER: sessions(TUESDAY)})

    def full(*given: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(caches.Folder, "place", full)
    code, said = run("repair")
    assert (code, "cannot be written" in said, "No space left" in said) == (1, True, True)
    assert (tmp_path / "copies" / SEPTEMBER).read_bytes() == sessions(MONDAY)


def test_what_is_asked_of_the_hubs_interface_is_counted_with_everybody_elses_requests(
    run: Cli, hub: Hub, database: str, running: RunningSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(hub, {month(n): sessions(MONDAY - timedelta(days=n)) for n in range(1, 10)})
    monkeypatch.setenv("AIRFLOW_CONN_WAREHOUSE", database)
    asked(running)
    assert run("get", "--release", "finra/short_volume")[0] == 0
    sent = asked(running)
    assert sent["tree"] == sent["repo_info"] == 1
    counted = rows(database, "select count(*) as n from publish.requests where kind = 'request'")[0]["n"]
    assert counted >= sum(number for kind, number in sent.items() if kind != "resolve")


def test_a_cache_needs_no_stack_and_the_demos_needs_the_demo(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DAYBOOK_STATE", str(tmp_path / "none"))
    became: list[list[str]] = []
    monkeypatch.setattr(attach.os, "execve", lambda program, words, values: became.append(words[1:]))
    attach.cache(["repair", "--dry-run"])
    assert became == [["-m", "include.cli", "cache", "repair", "--dry-run"]]
    with pytest.raises(attach.LocalFailure, match="No demo is up"):
        attach.cache(["--demo", "status"])


# --- the upstream's own newest item -------------------------------------------------------------------


@pytest.fixture
def beside(run: Cli, hub: Hub, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """The same with a warehouse, whose clock and upstream are the desk's; the Hub has Monday."""
    monkeypatch.setenv("AIRFLOW_CONN_WAREHOUSE", desk.url)
    monkeypatch.setenv("DAYBOOK_SANDBOX_URL", desk.cdn.url)
    monkeypatch.setattr(caching.registry, "streams", lambda: (STREAM,))
    publish(hub, {SEPTEMBER: sessions(MONDAY)})
    run("get", "--release", "finra/short_volume")

    def look() -> tuple[int, str]:
        code, said = run("status", "--upstream")
        return code, next(line.strip() for line in said.splitlines() if "upstream:" in line)

    return look


def forget() -> None:
    """Let a day pass since the upstream was last asked."""
    for kept in Path(caching.settings.load().cache_root).rglob("upstream/*.json"):
        kept.write_text(kept.read_text().replace('"at": "20', '"at": "19'))


def test_an_upstream_that_has_something_newer_is_found_with_one_request_a_day(beside: Cli, desk: Desk) -> None:
    desk.cdn.publish(TUESDAY)
    code, said = beside()
    assert (code, said.startswith("upstream: NEWER – the upstream has 2026-09-15, ours ends at 2026-09-14")) == (
        0,
        True,
    )
    assert len(desk.cdn.requests) == 1
    assert beside()[1] == said
    assert len(desk.cdn.requests) == 1, "asked once a day"
    assert desk.rows() == [], "nothing is collected by it"


def test_an_upstream_that_has_nothing_newer_yet_says_so_and_one_that_is_late_with_the_newest_does_not_hide_the_rest(
    beside: Cli, desk: Desk
) -> None:
    assert beside()[1].startswith("upstream: the upstream has nothing newer, ours ends at 2026-09-14")
    assert len(desk.cdn.requests) == 1
    desk.cdn.publish(TUESDAY)
    desk.at(ny(TUESDAY + timedelta(days=1)))
    forget()
    assert beside()[1].startswith("upstream: NEWER – the upstream has 2026-09-15")
    assert len(desk.cdn.requests) == 3, "of Wednesday it has nothing yet, of Tuesday it has"


def test_an_upstream_that_cannot_be_asked_is_not_one_without_anything_newer(beside: Cli, desk: Desk) -> None:
    desk.cdn.publish(TUESDAY)
    for number, trouble in enumerate((Trouble(), Trouble(reset=True), Trouble(status=403, body=PAGE)), start=1):
        forget()
        desk.cdn.trouble("CNMS", TUESDAY, trouble)
        assert "newest is not known" in beside()[1]
        assert "newest is not known" in beside()[1]
        assert len(desk.cdn.requests) == number, "nor is it asked again at once"
    blocked = desk.one("select blocked_until > collect.clock() as is_blocked from collect.host_groups")
    assert blocked["is_blocked"], "a page that keeps us out keeps everybody out"
    forget()
    assert "Requests to finra are stopped" in beside()[1]
    assert len(desk.cdn.requests) == 3


def test_whoever_dies_while_asking_counts_as_having_asked(
    beside: Cli, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    def die(*given: object, **named: object) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(upstream.http, "send", die)
        with pytest.raises(Killed):
            beside()
    assert "it was asked and no answer kept" in beside()[1]
    assert desk.cdn.requests == []
