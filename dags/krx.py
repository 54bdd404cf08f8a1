"""KRX's prices, issues and indices: the Airflow DAGs `krx` and `krx_indices`.

`krx` at 08:10 Seoul and `krx_indices` at 08:15, Monday to Friday: a session is published at about 08:00 on the morning
of the next one, and judged at 09:00. What a run does, when it waits and how the past is collected stands on each DAG's
page, made by `include.dag_factory`.
"""

from __future__ import annotations

from include.dag_factory import Priority, source_dag
from include.registry import source

dag = source_dag(source("krx"), priority=Priority.DAILY_MARKET)
indices = source_dag(source("krx"), job="indices", priority=Priority.DAILY_MARKET)
