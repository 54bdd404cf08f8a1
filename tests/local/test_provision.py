"""What a fresh Airflow is given, and what an operator's hand is left to."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from include import registry, settings
from include.local import doctor, pools, provision
from include.local.rest import Airflow
from include.settings import ROOT, SettingError


class Fake:
    """An Airflow in memory, as far as provisioning speaks to it."""

    def __init__(self, *dags: tuple[str, str]) -> None:
        self.dags = {
            dag_id: {"dag_id": dag_id, "is_paused": True, "tags": [{"name": tag}], "relative_fileloc": f"{dag_id}.py"}
            for dag_id, tag in dags
        }
        self.pools: dict[str, dict[str, Any]] = {"default_pool": {"name": "default_pool", "slots": 128}}
        self.variables: dict[str, dict[str, Any]] = {}
        self.connections: list[dict[str, Any]] = []
        self.errors: list[dict[str, Any]] = []
        self.runs: list[dict[str, Any]] = []

    def all(self, path: str, key: str, params: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
        if path == "/dags/~/dagRuns":
            return [run for run in self.runs if run["state"] in (params or {})["state"]]
        return {
            "/dags": list(self.dags.values()),
            "/pools": list(self.pools.values()),
            "/connections": self.connections,
            "/importErrors": self.errors,
        }[path]

    def find(self, path: str) -> dict[str, Any] | None:
        return self.variables.get(path.rpartition("/")[2])

    def call(self, method: str, path: str, json: Any = None, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        kind, _, name = path.strip("/").partition("/")
        match kind, method:
            case "dags", "PATCH":
                self.dags[name].update(json)
            case "pools", "POST":
                self.pools[json["name"]] = json
            case "pools", "PATCH":
                self.pools[name].update(json)
            case "variables", _:
                self.variables[json["key"]] = json
        return {}

    def paused(self) -> set[str]:
        return {dag_id for dag_id, dag in self.dags.items() if dag["is_paused"]}


def test_a_file_is_read_once_its_dag_or_its_error_is_there() -> None:
    """By name: a file of somebody else's does not stand for one of ours."""
    fake = Fake(("finra", "source:finra"), ("somebodys", "theirs"))
    fake.errors = [{"filename": "dags/broken.py"}]
    fake.dags["finra"]["tags"] = []
    assert provision.parsed(cast(Airflow, fake)) == {"somebodys.py", "broken.py"}


def test_the_doctor_names_a_job_without_a_dag_and_a_run_that_nobody_starts() -> None:
    jobs = sorted({stream.job_name for stream in registry.streams()})
    fake = Fake(*((job, f"source:{job}") for job in jobs), ("publish", "system"))
    now = datetime(2026, 9, 15, 23, 0, tzinfo=UTC)

    def run(dag_id: str, minutes: int, state: str = "queued") -> dict[str, Any]:
        return {"dag_id": dag_id, "state": state, "queued_at": (now - timedelta(minutes=minutes)).isoformat()}

    assert list(doctor.dags(cast(Airflow, fake), now)) == []
    # One that waits for another run of its DAG is in order, and so is one that has just been asked for.
    fake.runs = [run("finra", 6), run("fred", 4), run("publish", 30), run("publish", 40, "running")]
    (stuck,) = doctor.dags(cast(Airflow, fake), now)
    assert stuck == "a run of finra is queued since 2026-09-15 22:54 UTC: its DAG is paused"
    fake.dags["finra"]["is_paused"] = False
    fake.errors = [{"filename": "krx.py", "stack_trace": "Traceback\nSyntaxError: no"}]
    del fake.dags["krx"]
    assert list(doctor.dags(cast(Airflow, fake), now)) == [
        "krx.py cannot be imported: SyntaxError: no",
        "Airflow has no DAG krx; see the dag-processor's log",
        "a run of finra is queued since 2026-09-15 22:54 UTC: see the scheduler's log",
    ]


def provisioned(fake: Fake, environment: Mapping[str, str]) -> tuple[provision.Provisioned, list[str]]:
    said: list[str] = []
    return provision.provision_dags(cast(Airflow, fake), environment, said.append), said


CONNECTED = {"AIRFLOW_CONN_FINRA": "{}"}


def test_the_systems_own_dags_and_connected_sources_are_unpaused() -> None:
    fake = Fake(("finra", "source:finra"), ("publish", "system"))
    done, said = provisioned(fake, CONNECTED)
    assert fake.paused() == set()
    assert done.unpaused == ("finra", "publish")
    assert said == []


def test_a_source_without_a_connection_stays_paused_and_is_named() -> None:
    fake = Fake(("finra", "source:finra"), ("publish", "system"))
    done, said = provisioned(fake, {})
    assert fake.paused() == {"finra"}
    assert done.waiting == {"finra": ("finra",)}
    assert "finra stays paused (finra)" in said[0]


def test_a_connection_made_in_the_ui_counts() -> None:
    fake = Fake(("finra", "source:finra"))
    fake.connections.append({"connection_id": "finra"})
    provisioned(fake, {})
    assert fake.paused() == set()


def test_a_source_that_got_its_connection_later_is_unpaused_then() -> None:
    fake = Fake(("finra", "source:finra"))
    provisioned(fake, {})
    provisioned(fake, CONNECTED)
    assert fake.paused() == set()


def test_what_an_operator_paused_stays_paused() -> None:
    fake = Fake(("finra", "source:finra"), ("publish", "system"))
    provisioned(fake, CONNECTED)
    fake.dags["publish"]["is_paused"] = True
    done, _ = provisioned(fake, CONNECTED)
    assert fake.paused() == {"publish"}
    assert done.unpaused == ()


def test_a_dag_that_is_new_is_unpaused_beside_one_that_an_operator_paused() -> None:
    fake = Fake(("publish", "system"))
    provisioned(fake, {})
    fake.dags["publish"]["is_paused"] = True
    fake.dags.update(Fake(("upkeep", "system")).dags)
    provisioned(fake, {})
    assert fake.paused() == {"publish"}


def test_a_dag_that_somebody_else_put_into_the_folder_is_left_to_them() -> None:
    fake = Fake(("mine", "private"))
    provisioned(fake, CONNECTED)
    assert fake.paused() == {"mine"}


def test_pools_are_made_once_and_a_resized_one_stays_resized() -> None:
    fake = Fake()
    wanted = pools.sizes(parallelism=16, ai_concurrency=30)
    provision.provision_pools(cast(Airflow, fake), wanted)
    assert {name: pool["slots"] for name, pool in fake.pools.items()} == {
        "default_pool": 128,
        "hf_push": 1,
        "llm": 30,
        "sla": 1,
        "backfill": 4,
    }
    assert all(fake.pools[name]["include_deferred"] for name in wanted)
    fake.pools["backfill"]["slots"] = 7
    wanted["llm"]["slots"] = 5
    provision.provision_pools(cast(Airflow, fake), wanted)
    assert fake.pools["backfill"]["slots"] == 7
    assert fake.pools["llm"]["slots"] == 5


def test_the_pools_file_is_what_airflows_own_import_takes() -> None:
    file = json.loads((ROOT / "config" / "pools.json").read_text())
    assert set(file) == {"hf_push", "llm", "sla", "backfill"}
    assert (file["hf_push"]["slots"], file["sla"]["slots"]) == (1, 1)
    for pool in file.values():
        assert set(pool) == {"slots", "description", "include_deferred"}
        assert isinstance(pool["slots"], int)
        assert pool["include_deferred"] is True


def test_a_small_machine_still_has_a_lane_for_backfills() -> None:
    assert pools.sizes(2, 60)["backfill"]["slots"] == 1


def test_the_compose_stack_gets_the_same_pools_and_leaves_a_resized_one_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AI_CONCURRENCY", "30")
    monkeypatch.setenv("AIRFLOW__CORE__PARALLELISM", "16")
    there, wanted = tmp_path / "there.json", tmp_path / "wanted.json"
    there.write_text(json.dumps({"default_pool": {"slots": 128, "description": "", "include_deferred": False}}))
    assert pools.main(there, wanted) == 0
    made = json.loads(wanted.read_text())
    assert made == pools.sizes(16, 30)
    made["backfill"]["slots"], made["llm"]["slots"] = 7, 60
    there.write_text(json.dumps(made))
    assert pools.main(there, wanted) == 0
    assert {name: pool["slots"] for name, pool in json.loads(wanted.read_text()).items()} == {"llm": 30}
    init = (ROOT / "config" / "compose-init").read_text()
    assert "python -m include.local.pools" in init
    assert "airflow pools import config/pools.json" not in init


@pytest.mark.parametrize("value", ["", "0", "-1"])
def test_no_number_of_analyses_means_sixty(value: str) -> None:
    assert settings.load({"AI_CONCURRENCY": value}).ai_concurrency == 60


@pytest.mark.parametrize(
    ("name", "value"),
    [("AI_CONCURRENCY", "many"), *(("AIRFLOW__CORE__PARALLELISM", value) for value in ("many", "-1", "0"))],
)
def test_a_size_that_cannot_be_is_refused_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    (tmp_path / "there.json").write_text("{}")
    with pytest.raises(SettingError, match=name):
        pools.main(tmp_path / "there.json", tmp_path / "wanted.json")
