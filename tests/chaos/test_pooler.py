"""Behind a pooler that gives each transaction another server connection: the same rows, the same verdicts.

Needs PgBouncer on the machine (Debian: `apt install pgbouncer`), and says so where it is missing.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import pytest
from psycopg import sql

from include.contract import CycleStatus, Outcome
from include.engine import jobs
from include.engine.db import connect
from include.local import ports
from tests.engine.cdn import serving
from tests.engine.desk import MONDAY, TUESDAY, make, ny
from tests.engine.races import Arena

pytestmark = pytest.mark.chaos

CONFIGURATION = """[databases]
* = host={host} port={port}

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {listen}
auth_type = plain
auth_file = {users}
pool_mode = transaction
default_pool_size = 3
max_client_conn = 200
ignore_startup_parameters = options,extra_float_digits
unix_socket_dir =
logfile =
pidfile =
"""
TIMEOUTS = {
    "statement_timeout": "60s",
    "lock_timeout": "20s",
    "idle_in_transaction_session_timeout": "60s",
    "timezone": "UTC",
}


@pytest.fixture
def pooled(database: str, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of the test's database through PgBouncer; its role has the timeouts that ours would bring."""
    program = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
    if program is None:
        pytest.skip("PgBouncer is not installed (Debian: apt install pgbouncer)")
    where = urlsplit(database)
    name = where.path.removeprefix("/")
    with connect(database, autocommit=True) as connection:
        for setting, value in TIMEOUTS.items():
            connection.execute(
                sql.SQL("alter database {} set {} = {}").format(
                    sql.Identifier(name), sql.Identifier(setting), sql.Literal(value)
                )
            )
    home = tmp_path_factory.mktemp("pooler")
    for folder in (home, *home.parents[:2]):
        folder.chmod(0o711)
    listen = ports.any_free()
    users = home / "users.txt"
    users.write_text(f'"{where.username}" "{where.password}"\n')
    (home / "pgbouncer.ini").write_text(
        CONFIGURATION.format(host=where.hostname, port=where.port, listen=listen, users=users)
    )
    for file in (users, home / "pgbouncer.ini"):
        file.chmod(0o644)
    as_user = ["-u", "nobody"] if os.geteuid() == 0 else []
    process = subprocess.Popen([program, "-q", *as_user, str(home / "pgbouncer.ini")], stderr=subprocess.DEVNULL)
    monkeypatch.setenv("DAYBOOK_POOLER", "transaction")
    login = f"{where.username}:{where.password}" if where.password else f"{where.username}"
    url = urlunsplit(("postgresql", f"{login}@127.0.0.1:{listen}", where.path, "", ""))
    try:
        _wait_until_it_listens(process, listen)
        yield url
    finally:
        process.terminate()
        process.wait(30)


def _wait_until_it_listens(process: subprocess.Popen[bytes], port: int) -> None:
    end = time.monotonic() + 30
    while not ports.listens(process.pid, port):
        assert process.poll() is None, "PgBouncer ended at once"
        assert time.monotonic() < end, "PgBouncer does not listen"
        time.sleep(0.05)


def test_poll_backfill_and_replay_write_the_same_rows(pooled: str, tmp_path: Path) -> None:
    with serving() as cdn:
        desk = make(pooled, cdn, tmp_path)
        desk.at(ny(TUESDAY))
        for day in (MONDAY, TUESDAY):
            cdn.publish(day)
        assert desk.poll().status is CycleStatus.SUCCESS
        desk.backfill(MONDAY, run_id="pooled")
        assert jobs.conclude(pooled, "pooled")[0] is Outcome.SUCCESS
        before = desk.rows(), desk.history()
        assert desk.held_days() == {MONDAY, TUESDAY}
        desk.replay(MONDAY, TUESDAY)
        assert (desk.rows(), desk.history()) == before


def test_no_write_falls_on_the_wrong_side_of_the_cutoff(pooled: str) -> None:
    arena = Arena(pooled, size=6).open()
    try:
        for _ in range(30):
            arena.round(lead=0.2, tail=0.1)
        assert arena.complaints == []
        assert arena.captured == 30
    finally:
        arena.close()
