"""FRED's economic series with all their revisions: the Airflow DAG `fred`.

18:15 New York, every day. Which series it collects stands in `config/fred_series.yaml`. What a run does, when it waits
and how the past is collected stands on the DAG's page, made by `include.dag_factory`.
"""

from __future__ import annotations

from include.dag_factory import Priority, source_dag
from include.registry import source

dag = source_dag(source("fred"), priority=Priority.MACRO)
