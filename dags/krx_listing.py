"""The companies listed in Korea, from KIND: the Airflow DAG `krx_listing`.

08:00 Seoul, every day, once: it reads a web page, so nothing is asked again that day. Its rows are the asset
`kind.companies`, on which what looks after new stocks is scheduled. What a run does stands on the DAG's page, made by
`include.dag_factory`.
"""

from __future__ import annotations

from include.dag_factory import Priority, source_dag
from include.registry import source

dag = source_dag(source("kind"), priority=Priority.LISTS)
