"""Every DAG file parses in a fresh process that can reach nothing, loads nothing heavy, and obeys the policy.

The folder is parsed twice, by two processes with different hash seeds; the tests read what those two saw.
"""

from __future__ import annotations

import json

import pytest

from include.registry import SOURCES
from tests.house import dag_policy, parsing
from tests.house.tree import ROOT

# The id of each source's main DAG.
MAIN = {source.name: next(stream.job_name for stream in source.streams if stream.job is None) for source in SOURCES}


@pytest.fixture(scope="module")
def parsed(tmp_path_factory):
    """What two fresh processes saw when they parsed the whole folder."""
    scratch = tmp_path_factory.mktemp("parse")
    return [parsing.parse(ROOT / "dags", ROOT / "plugins", scratch, seed) for seed in (0, 4_242)]


@pytest.fixture(scope="module")
def seen(parsed):
    return parsed[0]


def test_every_file_parses(seen):
    assert seen["import_errors"] == {}
    assert seen["dags"]
    assert dag_policy.silent(seen) == []


def test_every_source_of_the_registry_has_its_dag(seen):
    assert dag_policy.registered(seen, MAIN) == []


def test_every_task_is_in_a_pool_that_is_provisioned(seen):
    pools = json.loads((ROOT / "config" / "pools.json").read_text(encoding="utf-8"))
    assert dag_policy.pools(seen, pools) == []
    assert all(pool["include_deferred"] is True and pool["description"] for pool in pools.values())


def test_two_processes_serialise_every_dag_to_the_same_bytes(parsed):
    assert dag_policy.unstable(*parsed) == []


def test_nothing_is_read_and_nothing_reached_while_files_are_parsed(parsed):
    assert [each for seen in parsed for each in dag_policy.unreachable(seen)] == []


def test_parsing_loads_nothing_heavy(seen):
    assert dag_policy.heavy(seen["loaded_by_dags"]) == []


def test_the_plugin_loads_nothing_heavy(seen):
    assert dag_policy.heavy(seen["loaded_by_plugin"]) == []


def test_tags_follow_the_policy(seen):
    named = {stream.dag: source.name for source in SOURCES for stream in source.streams if stream.dag}
    assert dag_policy.tags(seen, MAIN, named) == []


def test_every_dag_and_every_parameter_explains_itself(seen):
    assert dag_policy.words(seen) == []


def test_no_task_can_run_for_ever(seen):
    assert dag_policy.timeouts(seen) == []
