"""The Bank of Korea's economic series: the Airflow DAG `ecos`.

08:20 Seoul, every day. Which series it collects stands in `config/ecos_series.yaml`. What a run does, when it waits and
how the past is collected stands on the DAG's page, made by `include.dag_factory`.
"""

from __future__ import annotations

from include.dag_factory import Priority, source_dag
from include.registry import source

dag = source_dag(source("ecos"), priority=Priority.MACRO)
