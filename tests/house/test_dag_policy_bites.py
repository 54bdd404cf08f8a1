"""The DAG tests have teeth: a folder that breaks every rule is parsed, and each rule sees its own."""

from __future__ import annotations

import copy

import pytest

from tests.house import dag_policy, parsing

MAIN = {"finra": "finra"}
GOOD = '''
"""A DAG that obeys."""
from datetime import datetime, timedelta, timezone

from airflow.sdk import DAG, Param, task

with DAG(
    "finra",
    schedule=None,
    start_date=datetime(2026, 1, 1, tzinfo=timezone.utc),
    tags=["source:finra", "kind:market"],
    doc_md="What it does.",
    params={"mode": Param("poll", type="string", title="Mode", description="What to do.")},
    default_args={"execution_timeout": timedelta(minutes=15)},
):

    @task
    def work():
        import pandas  # where it is used

        return pandas.__version__

    work()
'''

BAD = '''
"""A DAG that breaks what it can, without an import error."""
import random
import socket
from datetime import datetime, timezone

import pandas
from airflow.providers.http.hooks.http import HttpHook
from airflow.sdk import DAG, Connection, Param, Variable, task

for look in (lambda: Variable.get("a", default=None), lambda: Connection.get("warehouse")):
    try:
        look()
    except Exception:
        pass
try:
    socket.create_connection(("127.0.0.1", 5432))
except OSError:
    pass

with DAG(
    "other",
    schedule=None,
    start_date=datetime(2026, 1, 1, tzinfo=timezone.utc),
    tags=["source:finra", "mine"],
    description=" ".join({"alpha", "beta", "gamma", "delta", "epsilon", "zeta"}),
    params={"mode": Param("poll", type="string")},
):

    @task(pool="nobody_made_it")
    def work(): ...

    work()
'''

SILENT = '"""It names neither of the two words that make a file worth a look."""\n'
BROKEN = '"""A DAG for Airflow that does not even import."""\nraise RuntimeError("no")\n'
PLUGIN = '"""A plugin that is heavy."""\nimport pyarrow\n'


@pytest.fixture(scope="module")
def parsed(tmp_path_factory):
    """What two processes saw of a folder with a good, a bad and a broken file, and a heavy plugin."""
    root = tmp_path_factory.mktemp("offending")
    for name, text in (
        ("dags/finra.py", GOOD),
        ("dags/other.py", BAD),
        ("dags/broken.py", BROKEN),
        ("dags/silent.py", SILENT),
        ("plugins/p.py", PLUGIN),
    ):
        file = root / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    return [parsing.parse(root / "dags", root / "plugins", root, seed, home=root) for seed in (0, 4_242)]


@pytest.fixture(scope="module")
def bad(parsed):
    return parsed[0]


@pytest.fixture
def good(parsed):
    """Only the obedient DAG, as one may change it."""
    seen = copy.deepcopy(parsed[0])
    seen["dags"] = {"finra": seen["dags"]["finra"]}
    return seen


def test_a_file_that_does_not_import_is_an_error(bad):
    assert list(bad["import_errors"]) == ["broken.py"]


def test_a_file_that_airflow_passes_over_is_seen(bad):
    assert dag_policy.silent(bad) == ["silent.py gives no DAG"]


def test_reads_and_connections_at_import_are_seen(bad):
    complaints = "\n".join(dag_policy.unreachable(bad))
    assert "Variable.get('a')" in complaints
    assert "Connection.get('warehouse')" in complaints
    assert "5432" in complaints


def test_heavy_modules_are_seen_in_dags_and_in_the_plugin(bad):
    loaded = dag_policy.heavy(bad["loaded_by_dags"])
    assert {"pandas", "airflow.providers.http.hooks.http"} <= set(loaded)
    assert "pyarrow" in dag_policy.heavy(bad["loaded_by_plugin"]) + dag_policy.heavy(bad["loaded_by_dags"])


def test_an_order_that_depends_on_the_process_is_seen(parsed):
    assert dag_policy.unstable(*parsed) == ["other is serialised differently by two processes"]


def test_an_unprovisioned_pool_a_missing_timeout_and_missing_words_are_seen(bad):
    assert len(dag_policy.pools(bad, ["hf_push"])) == 1
    assert dag_policy.timeouts(bad) == ["other.work has no execution timeout"]
    assert dag_policy.words(bad) == [
        "other has no doc_md",
        "other: the parameter 'mode' has no title",
        "other: the parameter 'mode' has no description",
    ]


def test_tags_outside_the_policy_are_seen(bad):
    complaints = " ".join(dag_policy.tags(bad, MAIN))
    assert "outside the policy: ['mine']" in complaints
    assert "begins with 'finra_'" in complaints
    assert "no tag `kind:…`" in complaints


def test_the_obedient_dag_has_no_complaint(good):
    assert dag_policy.pools(good, ["hf_push"]) == []
    assert dag_policy.timeouts(good) == []
    assert dag_policy.words(good) == []
    assert dag_policy.tags(good, MAIN) == []
    assert dag_policy.registered(good, MAIN) == []


@pytest.mark.parametrize(
    "tags",
    [
        ["source:nowhere", "kind:x"],
        ["source:finra", "system", "kind:x"],
        ["kind:x"],
        ["source:finra", "kind:"],
    ],
)
def test_each_wrong_set_of_tags_is_seen(good, tags):
    good["dags"]["finra"]["tags"] = tags
    assert dag_policy.tags(good, MAIN)


def test_a_system_dag_needs_no_source(good):
    good["dags"]["finra"]["tags"] = ["system"]
    assert dag_policy.tags(good, MAIN) == []


def test_a_source_without_its_dag_or_file_is_seen(good):
    assert dag_policy.registered(good, {**MAIN, "sec": "sec"}) == ["the source 'sec' has no DAG of the id 'sec'"]
    good["dags"]["finra"]["file"] = "all.py"
    assert dag_policy.registered(good, MAIN) == ["the DAG 'finra' is in all.py, not in finra.py"]
