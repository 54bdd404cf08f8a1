"""What every test of the operators has: finra declared, no notes, and connections only where a test sets them."""

from __future__ import annotations

import pytest

from include.operators import declared
from tests.operators.stage import FINRA, ScriptedEngine


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    declared.declare(FINRA)
    for name in ("AIRFLOW_CONN_WAREHOUSE", "AIRFLOW_CONN_FINRA", "AIRFLOW_CONN_HUGGINGFACE", "AIRFLOW__API__BASE_URL"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def connected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_WAREHOUSE", "postgresql://nobody@127.0.0.1:1/nothing")
    monkeypatch.setenv("AIRFLOW_CONN_FINRA", '{"conn_type": "http", "host": "https://cdn.finra.org"}')


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> ScriptedEngine:
    return ScriptedEngine().install(monkeypatch)
