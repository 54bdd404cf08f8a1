"""Each rule of the house is fed a small offending text and sees it, and an innocent one and stays quiet."""

from __future__ import annotations

import pytest

from tests.house import rules

DOC = '"""What it promises."""\n'


def broken(path: str, text: str) -> set[str]:
    """The names of the rules that a module with this text would break."""
    return {finding.rule for finding in rules.check(path, DOC + text)}


# --- imports ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("include/engine/cycle.py", "from include.registry import SOURCES"),
        ("include/engine/cycle.py", "from include.sources.finra import streams"),
        ("include/engine/cycle.py", "from include import registry"),
        ("include/engine/cycle.py", "import include.registry as r"),
        ("include/engine/cycle.py", "from ..registry import SOURCES"),
        ("include/engine/cycle.py", "from .. import registry"),
        ("include/engine/cycle.py", "from include.outputs import releases"),
        ("include/engine/cycle.py", "from include.operators import tasks"),
        ("include/engine/cycle.py", "def f():\n    from include.registry import SOURCES"),
        (
            "include/engine/cycle.py",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import include.registry",
        ),
        ("include/engine/cycle.py", "import importlib\nimportlib.import_module('include.registry')"),
        ("include/engine/cycle.py", "name = 'x'\n__import__(name)"),
        ("include/engine/cycle.py", "from airflow.sdk import DAG"),
        ("include/engine/cycle.py", "import airflow"),
        ("include/engine/cycle.py", "import include"),
        ("include/engine/cycle.py", "from dags import finra"),
        ("include/engine/cycle.py", "from tests import conftest"),
        ("include/engine/cycle.py", "from ....elsewhere import x"),
        ("include/sources/finra/streams.py", "from include.engine import db"),
        ("include/sources/finra/streams.py", "from include.settings import load"),
        ("include/sources/finra/streams.py", "from include.calendars import sessions"),
        ("include/sources/finra/streams.py", "from include.sources.sec import streams"),
        ("include/sources/finra/streams.py", "from ..sec import streams"),
        ("include/contract.py", "import pandas"),
        ("include/contract.py", "from include.settings import load"),
        ("include/settings.py", "from include.contract import Mode"),
        ("include/calendars.py", "from include.engine.db import connect"),
        ("include/calendars.py", "from include.settings import load"),
        ("include/registry.py", "from include.engine import cycle"),
        ("include/outputs/parquet.py", "from include.registry import SOURCES"),
        ("include/outputs/parquet.py", "from include.analysis import prompt"),
        ("include/analysis/prompt.py", "from include.outputs import parquet"),
        ("include/operators/stream.py", "from include.registry import SOURCES"),
        ("include/operators/stream.py", "from include.dag_factory import build"),
        ("include/dag_factory.py", "from include.registry import SOURCES"),
        ("include/cli.py", "from airflow.sdk import DAG"),
        ("include/cli.py", "from include.operators import stream"),
        ("include/local/supervisor.py", "from include.sandbox import app"),
        ("include/local/supervisor.py", "from include.engine import lease"),
        ("include/cli.py", "from include.ops import api"),
        ("include/local/supervisor.py", "from include import engine"),
        ("include/sandbox/finra.py", "from include.sources.finra import tables"),
        ("include/sandbox/finra.py", "from include.registry import SOURCES"),
        ("include/sandbox/finra.py", "from include.engine import raw"),
        ("include/ops/api.py", "from include.operators import stream"),
        ("dags/finra.py", "from include.engine import cycle"),
        ("dags/finra.py", "from include.sources.finra import streams"),
        ("dags/finra.py", "from include.ops import api"),
        ("plugins/daybook_ops.py", "from include.engine import db"),
        ("plugins/daybook_ops.py", "from include.registry import SOURCES"),
        ("config/airflow_local_settings.py", "from include.engine import db"),
        ("include/extras/things.py", "import json"),
    ],
)
def test_an_import_the_wrong_way_is_found(path, text):
    assert "imports" in broken(path, text)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("dags/finra.py", "from include.dag_factory import build\nfrom include.registry import source"),
        ("dags/finra.py", "from airflow.sdk import DAG"),
        (
            "plugins/daybook_ops.py",
            "from include.ops.api import app\nfrom airflow.plugins_manager import AirflowPlugin",
        ),
        (
            "include/engine/cycle.py",
            "from include.contract import Mode\nfrom . import db\nfrom .raw import put",
        ),
        (
            "include/engine/cycle.py",
            "from include import calendars, settings\nfrom include.engine.db import connect",
        ),
        (
            "include/sources/finra/streams.py",
            "from include.contract import Stream\nfrom .tables import SHORT_VOLUME",
        ),
        ("include/sources/finra/__init__.py", "from .streams import SOURCE"),
        ("include/registry.py", "from include.sources import finra\nfrom include.contract import Source"),
        (
            "include/local/supervisor.py",
            "from include.engine import db\nfrom include.engine.db import connect",
        ),
        ("include/sandbox/finra.py", "from include.engine import db\nfrom include.contract import Table"),
        (
            "include/operators/stream.py",
            "from airflow.sdk import BaseOperator\nfrom include.outputs import parquet",
        ),
        ("include/contract.py", "from datetime import date\nimport enum"),
        ("include/cli.py", "from include.ops.watch import watch"),
        ("include/ops/api.py", "from airflow.api_fastapi.core_api.security import get_user"),
        ("include/local/database.py", "from include.engine.migrations import migrate"),
    ],
)
def test_an_import_the_right_way_is_no_finding(path, text):
    assert broken(path, text) == set()


# --- heavy imports ------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["dags/finra.py", "plugins/daybook_ops.py", "include/dag_factory.py"])
@pytest.mark.parametrize(
    "text",
    [
        "import pandas as pd",
        "import pyarrow.parquet",
        "from huggingface_hub import HfApi",
        "import openai",
        "from airflow.providers.http.hooks.http import HttpHook",
        "from airflow import providers",
        "import airflow.providers.slack",
        "try:\n    import pandas\nexcept ImportError:\n    pandas = None",
        "class C:\n    import pandas",
        "if True:\n    import pandas",
        "import importlib\nimportlib.import_module('pandas')",
    ],
)
def test_a_heavy_import_at_module_level_is_found(path, text):
    assert "heavy" in broken(path, text)


@pytest.mark.parametrize(
    "text",
    [
        "def f():\n    import pandas",
        "class C:\n    def f(self):\n        from airflow.providers.http.hooks.http import HttpHook",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import pandas",
        "from airflow.sdk import DAG",
    ],
)
def test_a_heavy_import_where_it_is_used_is_no_finding(text):
    assert broken("dags/finra.py", text) == set()


# --- SQL ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "Q = 'select a from b'",
        "Q = 'SELECT a, b\\n  FROM collect.cycles WHERE x = %s'",
        "Q = '''\n    -- the newest\n    Select *\n    From t'''",
        "Q = '/* all */ select * from t'",
        "Q = 'select clock_timestamp()'",
        "Q = 'select collect.clock()'",
        "Q = 'select 1'",
        "Q = 'explain analyze select a from b'",
        "Q = 'insert into t (a) values (1)'",
        "Q = 'INSERT INTO collect.fetches SELECT 1'",
        "Q = 'update t set a = 1'",
        "Q = 'update collect.cycles as c set status = %(s)s'",
        "Q = 'delete from t'",
        "Q = 'DELETE FROM t WHERE a'",
        "Q = 'merge into t using u on true'",
        "Q = 'create table t (a int)'",
        "Q = 'CREATE UNIQUE INDEX CONCURRENTLY i ON t (a)'",
        "Q = 'create or replace function f() returns int'",
        "Q = 'create schema if not exists collect'",
        "Q = 'create database daybook'",
        "Q = 'create temp table stage (like t)'",
        "Q = 'alter table t add column a int'",
        "Q = 'alter system reset all'",
        "Q = 'truncate t'",
        "Q = 'truncate table a, b cascade'",
        "Q = 'drop table if exists t'",
        "Q = 'drop schema collect cascade'",
        "Q = 'with due as (select 1) select * from due'",
        "Q = 'WITH RECURSIVE t(n) AS (values (1)) SELECT n FROM t'",
        "Q = 'copy stage (a, b) from stdin'",
        "Q = 'set local lock_timeout = 1'",
        "Q = 'set statement_timeout to 1000'",
        "Q = 'grant select on t to reader'",
        "Q = 'lock table t in exclusive mode'",
        "Q = 'begin; commit;'",
        "Q = 'a sentence first; delete from t'",
        "Q = b'select a from b'",
        "def f(t):\n    return f'select * from {t}'",
        "def f(t):\n    return f'insert into {t} (a) values (%s)'",
        "def f(t, s):\n    return f'update {t} set {s}'",
        "def f(p):\n    return f'{p} select a from b'",
        "def f(t):\n    return 'select * from ' + t",
        "def f(t):\n    return 'select ' + ', '.join(t) + ' from ' + t",
        "def f(t):\n    return ' '.join(['select a', 'from', t])",
        "def f(t):\n    return 'select %s from b' % t",
        "def f(t):\n    return 'select {} from {}'.format(t, t)",
        "def f(t):\n    return g(f'{t(\"select a from b\")}')",
        "Q = {'a': ['select a from b']}",
        "def f(a='select a from b'): ...",
        "def f(c, t):\n    c.execute('vacuum ' + t)",
        "def f(c):\n    c.execute('values (1)')",
        "def f(sql):\n    return sql.SQL('where a')",
        "def f():\n    x = 1\n    'select a from b'.strip()",
    ],
)
def test_sql_in_a_string_is_found(text):
    assert "sql" in broken("include/engine/cycle.py", text)


@pytest.mark.parametrize(
    "text",
    [
        "def f():\n    '''select a from b'''",
        "class C:\n    '''delete from t'''\n    a = 1\n    '''update t set a = 1'''",
        "T = 'Select the streams that are read from the list.'",
        "T = 'Nothing was deleted from the raw store.'",
        "T = 'Set DATABASE_URL to a PostgreSQL that you run.'",
        "T = 'The database could not be created. Drop it, or choose another name.'",
        "T = 'Update the pools, then set the slots.'",
        "T = 'Insert into the field what the upstream gave you.'",
        "T = ['select', 'from', 'truncate', 'commit', 'create', 'update']",
        "T = 'with what is left as an example'",
        "def f(c, q):\n    c.execute(q('engine.claim'), {'slot': 1})",
        "def f(sql):\n    return sql.SQL(', ').join([])",
        "def f(sql):\n    return sql.SQL(' and ').join([sql.SQL('{} = excluded.{}')])",
    ],
)
def test_prose_and_docstrings_are_no_sql(text):
    assert broken("include/engine/cycle.py", text) == set()


def test_examples_show_their_own_sql_and_use_the_settings_alone():
    assert broken("examples/vintages.py", "Q = 'select a from market.b'\nfrom include import settings") == set()
    assert broken("examples/vintages.py", "from include.engine import db") == {"imports"}


# --- environment --------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["include/engine/db.py", "dags/finra.py", "config/airflow_local_settings.py"])
@pytest.mark.parametrize(
    "text",
    [
        "import os\nos.environ['A']",
        "import os\nos.environ.get('A')",
        "import os\nos.getenv('A')",
        "import os\nos.putenv('A', 'b')",
        "import os\nos.unsetenv('A')",
        "import os\nos.path.expandvars('$A')",
        "import os as o\ndef f():\n    return o.environ",
        "from os import environ",
        "from os import getenv as g",
        "from os import *",
        "import os\ngetattr(os, 'environ')",
        "import posix\nposix.environ",
    ],
)
def test_a_read_of_the_environment_is_found(path, text):
    assert "environment" in broken(path, text)


def test_settings_reads_the_environment_and_others_use_the_rest_of_os():
    assert broken("include/settings.py", "import os\nos.environ['A']") == set()
    assert (
        broken("include/engine/raw.py", "import os\nos.fsync(1)\ndef f(request):\n    return request.environ") == set()
    )


# --- purity -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["include/sources/finra/parse.py", "include/contract.py"])
@pytest.mark.parametrize(
    "text",
    [
        "import psycopg",
        "import httpx",
        "import urllib.request",
        "from urllib import request",
        "import time",
        "from datetime import datetime\ndatetime.now()",
        "from datetime import date\ndate.today()",
        "open('a')",
        "import os",
        "from pathlib import Path",
        "import subprocess",
        "import random",
    ],
)
def test_input_output_and_clocks_in_a_source_are_found(path, text):
    assert "pure" in broken(path, text)


def test_a_source_may_read_the_bytes_that_it_is_given():
    text = "import csv, io, zipfile\nfrom urllib.parse import urlencode\ndef f(body):\n    return body.open()"
    assert broken("include/sources/finra/parse.py", text) == set()
    assert broken("include/engine/http.py", "import httpx, time\nopen('a')") == set()


# --- names, docstrings, size, plugins -----------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        "include/engine/utils.py",
        "include/engine/common.py",
        "include/engine/helpers.py",
        "include/engine/manager.py",
        "include/engine/base.py",
        "include/engine/db_utils.py",
        "include/engine/utils/db.py",
        "include/sources/Helper/parse.py",
    ],
)
def test_a_module_named_after_nothing_is_found(path):
    assert "name" in {finding.rule for finding in rules.module_name(path)}


def test_a_name_that_only_contains_such_a_word_is_fine():
    assert rules.module_name("include/engine/database.py") == []
    assert rules.module_name("include/engine/commonwealth.py") == []


@pytest.mark.parametrize("text", ["", "import json\n", "# a comment\n", '""""""\n', "'''   '''\n"])
def test_a_module_without_a_docstring_is_found(text):
    assert [finding.rule for finding in rules.docstring("include/engine/db.py", text)] == ["docstring"]


def test_a_module_that_is_two_modules_is_found():
    assert rules.length("include/engine/db.py", "a = 1\n" * rules.LINES) == []
    assert [f.rule for f in rules.length("include/engine/db.py", "a = 1\n" * (rules.LINES + 1))] == ["length"]


@pytest.mark.parametrize(
    "paths",
    [
        ["plugins/one.py", "plugins/two.py"],
        ["plugins/one.py", "plugins/inner/two.py"],
        ["plugins/README.md"],
        ["plugins/json.py"],
    ],
)
def test_anything_but_one_safe_plugin_file_is_found(paths):
    assert [finding.rule for finding in rules.one_plugin(paths)] == ["plugin"]


def test_one_plugin_file_or_no_folder_is_fine():
    assert rules.one_plugin(["plugins/daybook_ops.py", "plugins/page.html", "include/contract.py"]) == []
    assert rules.one_plugin(["include/contract.py"]) == []
