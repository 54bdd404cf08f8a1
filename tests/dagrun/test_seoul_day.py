"""The system's DAGs of a day in Seoul, run whole: a morning from dispatch to the verdict, and a control by hand."""

from __future__ import annotations

import pytest

from include import registry
from include.engine import controls, windows

pytestmark = pytest.mark.slow


def states(tasks):
    return {name: task["state"] for name, task in tasks.items()}


@pytest.fixture
def finra_alone(warehouse, database):
    """FINRA's stream in service, and no other: what is not collected here would be late, and rightly told."""
    windows.declare(database, registry.streams())
    for stream in registry.streams():
        if stream.source != "finra":
            controls.apply(database, controls.Change("retire", "stream", stream.name, "kim", "not collected here"))


def test_a_morning_from_dispatch_to_the_verdict(run, warehouse, finra_alone):
    assert run("dispatch")[0] == "success"
    assert run("finra")[0] == "success"
    warehouse(
        "update collect.installation set clock_offset = clock_offset + "
        "(collect.cutoff('2026-09-16') - interval '5 seconds' - collect.clock())"
    )
    state, tasks = run("sla_capture")
    assert (state, states(tasks)) == ("success", {"capture": "success"})
    (found,) = warehouse("select capture_status, late_count, expected_count from collect.sla_snapshots")
    assert found == {"capture_status": "CAPTURED", "late_count": 0, "expected_count": 1}
    assert run("audit")[0] == "success"
    assert run("maintenance")[0] == "success"
    assert warehouse("select incident_key from ops.incidents where closed_at is null") == []


def test_a_control_by_hand_holds_and_one_without_a_reason_is_red(run, warehouse, capfd):
    asked = {"action": "freeze", "scope": "source", "name": "finra", "reason": "they asked us to"}
    assert run("control", **asked)[0] == "success"
    assert warehouse("select state from collect.controls") == [{"state": "frozen"}]
    state, tasks = run("control", **{**asked, "action": "resume", "reason": ""})
    assert (state, tasks["change"]["try"]) == ("failed", 1)
    assert "REFUSED – Say who wants it and why" in "".join(capfd.readouterr())
    assert warehouse("select state from collect.controls") == [{"state": "frozen"}]


def test_a_dag_with_a_deadline_says_so_in_what_airflow_keeps():
    from airflow.dag_processing.dagbag import DagBag

    from tests.house.tree import ROOT

    bag = DagBag(dag_folder=str(ROOT / "dags"))
    timed = {name for name, dag in bag.dags.items() if dag.deadline}
    assert {"dispatch", "sla_capture", "upkeep", "finra"} <= timed
    assert not {"maintenance", "audit", "control", "publish"} & timed
