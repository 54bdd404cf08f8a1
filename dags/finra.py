"""FINRA's daily short sale volume: the Airflow DAG `finra`.

18:35 New York, Monday to Friday; the files of the day are on the CDN by then or soon after. What a run does, when it
waits and how the past is collected stands on the DAG's page, made by `include.dag_factory`.
"""

from __future__ import annotations

from include.dag_factory import Priority, source_dag
from include.registry import source

dag = source_dag(source("finra"), priority=Priority.DAILY_MARKET)
