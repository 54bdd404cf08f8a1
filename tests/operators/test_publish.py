"""Publication as tasks: built and pushed for real against the Hub's stand-in, and every other end in words."""

from __future__ import annotations

import json
import logging
import threading
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from include import cli
from include.operators import notes, publish
from include.operators.control import ControlOperator
from include.operators.publish import BuildOperator, PushOperator, stopping
from include.outputs import publisher
from include.outputs.lease import PublishLeaseLost
from include.outputs.publisher import PublicationRefused, Published, SentCommit
from tests.operators.stage import Ti, context, turn
from tests.outputs import market
from tests.outputs.publishing import MONTH, on_the_hub

NOW = datetime(2026, 9, 16, tzinfo=UTC)


@pytest.fixture(autouse=True)
def quiet(monkeypatch):
    monkeypatch.setattr(notes, "task", lambda context, words: None)
    monkeypatch.setattr(notes, "run", lambda context, words: None)
    monkeypatch.setattr(publish, "_now", lambda url: NOW)


@pytest.fixture
def stack(database, sandbox, monkeypatch, tmp_path):
    """A warehouse, an outbox and a Hub, all named by connections and settings."""
    running = sandbox()
    extra = {"namespace": "me"}
    connection = {"conn_type": "http", "host": running.hub_url, "password": "hf-token", "extra": extra}
    monkeypatch.setenv("AIRFLOW_CONN_HUGGINGFACE", json.dumps(connection))
    monkeypatch.setenv("AIRFLOW_CONN_WAREHOUSE", database)
    monkeypatch.setenv("DAYBOOK_OUTBOX_ROOT", str(tmp_path / "out box"))
    return running


def build():
    return BuildOperator(task_id="build", tables=[market.TABLE]).work(context(), turn())


def push(built=None):
    ti = Ti({("build", "outcome"): built} if built else None)
    return PushOperator(task_id="push").work(context(ti), turn())


def test_what_changed_is_built_and_pushed_once(stack, database):
    market.save(database, market.month(MONTH))
    assert build().words == "BUILT – 1 file built (finra/short_volume 2026-09)."
    pushed = push()
    assert pushed.how == "green"
    assert pushed.words.startswith("DONE – 1 file, commit ")
    assert pushed.data["files"] == 1
    assert on_the_hub(stack) == 1
    assert build().words == "NOTHING – no part of a table changed."
    assert push().words == "NOTHING – no file waits for publication."
    assert on_the_hub(stack) == 1


def test_a_build_without_time_is_called_again(stack, database):
    market.save(database, market.month(MONTH))
    ended = BuildOperator(task_id="build", tables=[market.TABLE]).work(context(), turn(began=-1_000.0))
    assert (ended.how, ended.data["left"]) == ("again", 1)


def test_an_outbox_that_cannot_be_written_is_red(stack, database, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("DAYBOOK_OUTBOX_ROOT", str(tmp_path / "file" / "outbox"))
    market.save(database, market.month(MONTH))
    ended = build()
    assert ended.how == "red"
    assert ended.words.startswith("FAILED – the outbox cannot be written")


@pytest.fixture
def published(monkeypatch, connected):
    """What the publisher says, in the place of a real one."""
    monkeypatch.setenv(
        "AIRFLOW_CONN_HUGGINGFACE", '{"conn_type": "http", "password": "t", "extra": {"namespace": "me"}}'
    )

    def says(result):
        def play(*arguments, **named):
            if isinstance(result, Exception):
                raise result
            return result

        monkeypatch.setattr(publisher, "publish", play)

    return says


SENT = (SentCommit("finra/short_volume", "abcdef0123456", "http://hub/commit/abcdef", 2),)


@pytest.mark.parametrize(
    ("result", "how", "words"),
    [
        (Published(SENT), "green", "DONE – 2 files, commit abcdef0123 (finra/short_volume)."),
        (Published(SENT, refused=(("a/path", "damaged"),)), "green", "PARTIAL – 2 files, commit"),
        (Published(SENT, failed=(("finra/x", "HTTP 400"),), waiting=1), "red", "FAILED – 2 files, commit"),
        (Published(busy="other until noon", waiting=3), "again", "WAITING – other until noon; 3 files to go."),
        (Published(SENT, deferred=(("x/large", "128 commits"),), waiting=3), "green", "PARTIAL – 2 files, commit"),
        (Published(SENT, stopped=True, waiting=3), "again", "GOING ON – 2 files, commit"),
        (Published(waiting=1), "again", "GOING ON – nothing was sent; 1 file to go."),
        (PublicationRefused("the repository is public"), "red", "REFUSED – the repository is public"),
        (PublishLeaseLost("taken over"), "again", "LEASE LOST – taken over"),
    ],
)
def test_every_end_of_a_push_is_told(published, result, how, words):
    published(result)
    ended = push()
    assert ended.how == how
    assert ended.words.startswith(words)


def test_a_push_that_is_put_off_comes_back_when_it_may(published):
    published(Published(put_off_until=NOW + timedelta(minutes=15), put_off_reason="the Hub is busy", waiting=2))
    ended = push()
    assert (ended.how, ended.wait) == ("again", timedelta(minutes=15))
    assert "2 files wait: the Hub is busy" in ended.words


def test_a_build_that_failed_makes_the_run_red_once_the_rest_is_sent(published):
    published(Published(SENT))
    ended = push({"how": "red", "words": "FAILED – not 2026-09."})
    assert ended.how == "red"
    assert ended.words.startswith("FAILED – not 2026-09. Sent: 2 files")


def test_the_client_of_the_hub_logs_no_signed_addresses(published):
    published(Published())
    push()
    assert not logging.getLogger("httpx2").isEnabledFor(logging.INFO)


def test_a_kill_reaches_code_that_waits_for_an_event():
    killed = threading.Event()
    with stopping(turn(stop=killed.is_set)) as stop:
        assert not stop.is_set()
        killed.set()
        assert stop.wait(5)


def control(database, monkeypatch, **asked):
    monkeypatch.setenv("AIRFLOW_CONN_WAREHOUSE", database)
    params = {"action": "publish", "scope": "file", "name": "", "reason": "it is right", **asked}
    return ControlOperator(task_id="change", sources=[]).work(context(params=params, conf=params), turn())


def test_a_held_file_is_let_pass_by_control_and_the_command_line_with_who_and_why(database, monkeypatch, capsys):
    with psycopg.connect(database) as connection:
        for name in ("one", "two"):
            connection.execute(
                "insert into publish.files (release, partition, path, content_hash, sha256, size, rows, source_run, "
                "state, reason, created_at, updated_at) values ('finra/short_volume', %s, %s, sha256(%s), sha256(%s), "
                "1, 1, 'a run', 'held', 'rows: 1 rows, 40 before', collect.clock(), collect.clock())",
                (name, f"finra/{name}.parquet", name.encode(), name.encode()),
            )
    refused = control(database, monkeypatch, name="finra/three.parquet")
    assert refused.how == "red"
    assert "Held are: 1 finra/one.parquet, 2 finra/two.parquet." in refused.words
    for wrong in ({"scope": "source"}, {"action": "freeze"}, {"reason": " ", "name": "finra/one.parquet"}):
        assert control(database, monkeypatch, **wrong).words.startswith("REFUSED")
    let = control(database, monkeypatch, name="finra/one.parquet")
    assert let.words.startswith("DONE – finra/one.parquet is let pass although rows: 1 rows, 40 before.")

    monkeypatch.setattr(cli, "warehouse", lambda: database)
    assert cli.main(["publication", "list"]) == 0
    assert "2  finra/two.parquet (1 rows, a run): rows: 1 rows, 40 before" in capsys.readouterr().out
    assert cli.main(["publication", "let", "2", "--who", "kim"]) == 1
    assert cli.main(["publication", "let", "2", "--who", "kim", "--why", "looked at"]) == 0
    assert cli.main(["publication", "list"]) == 0
    assert "NOTHING – no check holds a file" in capsys.readouterr().out
    found = [(f["path"], f["state"], f["let_by"], f["let_why"]) for f in market.files(database)]
    assert found == [
        ("finra/one.parquet", "waiting", "admin", "it is right"),
        ("finra/two.parquet", "waiting", "kim", "looked at"),
    ]
