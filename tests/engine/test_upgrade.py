"""What an upgrade promises: rows of the release before stay, both releases may be up, and a start says no in words."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from include import cli
from include.contract import CycleStatus, Mode
from include.engine import schema
from include.engine.migrations import MIGRATIONS, MigrationRefused, migrate
from include.settings import ROOT
from include.version import OLDEST_SCHEMA, VERSION
from tests.engine.cdn import Cdn
from tests.engine.desk import TUESDAY, WEDNESDAY, make, ny

# The schema from which upgrades are tried with data in.
BASELINE = "0027"
FILES = sorted((MIGRATIONS / "versions").glob("*.sql"))
HEAD = FILES[-1].name[:4]

Tables = dict[str, tuple[list[str], bytes]]


def at_baseline(url: str) -> None:
    """Bring an empty database to the baseline, as a release of then would have."""
    with psycopg.connect(url) as connection:
        for file in FILES:
            if file.name[:4] <= BASELINE:
                connection.execute(file.read_text(encoding="utf-8").encode())
        connection.execute("create table schema_version (version_num varchar(32) not null primary key)")
        connection.execute("insert into schema_version values (%s)", [BASELINE])


def contents(url: str, like: Tables | None = None) -> Tables:
    """Every table that has rows, as its columns and their content; those of `like`, with its columns, where given."""
    with psycopg.connect(url) as connection:
        names = connection.execute(
            "select format('%s.%s', n.nspname, c.relname), array_agg(a.attname::text order by a.attnum)"
            "  from pg_class c join pg_namespace n on n.oid = c.relnamespace"
            "  join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped"
            " where c.relkind = 'r' and n.nspname in ('collect', 'market', 'filings', 'dartbrief', 'publish', 'ops')"
            " group by 1"
        ).fetchall()
        found = {}
        for name, columns in [(name, like[name][0]) for name in like] if like else names:
            ask = sql.SQL("copy (select {} from {} order by 1, 2) to stdout").format(
                sql.SQL(", ").join(map(sql.Identifier, columns)), sql.Identifier(*name.split("."))
            )
            with connection.cursor().copy(ask) as out:
                text = b"".join(map(bytes, out))
            if text:
                found[name] = (columns, text)
        return found


def put(url: str, tables: Tables) -> None:
    """Write rows with the columns that they were read with, as that release would, with what triggers wrote."""
    with psycopg.connect(url) as connection:
        connection.execute("set session_replication_role = replica")
        for name, (columns, text) in tables.items():
            into = sql.SQL("copy {} ({}) from stdin").format(
                sql.Identifier(*name.split(".")), sql.SQL(", ").join(map(sql.Identifier, columns))
            )
            with connection.cursor().copy(into) as writing:
                writing.write(text)


def test_an_installation_of_the_baseline_is_migrated_with_its_data_in_and_goes_on(
    empty_database: str, database: str, cdn: Cdn, tmp_path: Path
) -> None:
    at_baseline(empty_database)
    desk = make(empty_database, cdn, tmp_path, ny(TUESDAY, 20))
    cdn.publish(TUESDAY)
    # The engine's own way in, on the schema of then: a window, a day that is not there, a filing with its triggers.
    assert desk.poll().status is CycleStatus.SUCCESS
    desk.sql(
        "insert into dartbrief.disclosures (rcept_no, corp_code, corp_name, corp_type, report_name, submitter,"
        " rcept_dt, remark, base_title, is_correction, unit, fetch_id, sent_at, parser_version, cycle_id, attempt)"
        " values ('20260915000001', '00126380', '삼성전자', 'Y', '주요사항보고서', '삼성전자', '2026-09-15', '유',"
        " '주요사항보고서', false, 'u', 1, collect.clock(), 1, 1, 1)"
    )
    before = contents(empty_database)
    assert {"collect.cycles", "collect.fetches", "collect.checkpoints", "market.finra_short_volume"} <= set(before)
    assert {"dartbrief.disclosures", "dartbrief.analysis_cache", "publish.stale"} <= set(before)

    assert migrate(empty_database) == [file.name[:4] for file in FILES if file.name[:4] > BASELINE]
    assert contents(empty_database, before) == before
    # What the release before writes with the columns that it knows is taken by the new schema.
    born = contents(database)
    old = {name: each for name, each in before.items() if name not in born}
    put(database, old)
    assert contents(database, old) == old
    # And what it collected is read and gone on with.
    rows = desk.rows()
    cdn.publish(WEDNESDAY)
    desk.at(ny(WEDNESDAY, 20))
    assert desk.poll().status is CycleStatus.SUCCESS
    assert desk.held_days() == {TUESDAY, WEDNESDAY}
    again = desk.request(Mode.REPLAY, TUESDAY)
    desk.begin(again)
    desk.work_off(again)
    assert [row for row in desk.rows() if row["session_date"] == TUESDAY] == rows


def test_a_start_says_in_words_that_a_schema_is_too_old_and_lets_a_newer_one_be(
    empty_database: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_WAREHOUSE", empty_database)
    with pytest.raises(schema.SchemaTooOld, match="no tables of Daybook yet"):
        schema.check(empty_database)
    with psycopg.connect(empty_database, autocommit=True) as connection:
        connection.execute("create table schema_version (version_num varchar(32) not null primary key)")
        connection.execute("insert into schema_version values (%s)", [BASELINE])
        assert cli.main(["status"]) == 1
        said = capsys.readouterr().err
        assert said.startswith(
            f"REFUSED – The warehouse is at schema {BASELINE}; Daybook {VERSION} needs {OLDEST_SCHEMA}"
        )
        assert "./run cli migrate" in said
        for revision in (OLDEST_SCHEMA, HEAD, "9999"):
            connection.execute("update schema_version set version_num = %s", [revision])
            assert schema.check(empty_database) == revision
    # A release that does not know the schema goes on, but migrates nothing.
    with pytest.raises(MigrationRefused, match="at schema 9999, which this release"):
        migrate(empty_database)


def test_the_version_stands_in_one_place_and_the_change_log_and_the_verbs_agree(
    capsys: pytest.CaptureFixture[str],
) -> None:
    from include.local import __main__ as launcher

    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = next(line for line in changes.splitlines() if line.startswith("## "))
    assert newest.split()[-1] == VERSION
    assert OLDEST_SCHEMA in {file.name[:4] for file in FILES}
    for main in (launcher.main, cli.main):
        with pytest.raises(SystemExit) as ended:
            main(["--version"])
        assert (ended.value.code, capsys.readouterr().out) == (0, f"Daybook {VERSION}\n")
