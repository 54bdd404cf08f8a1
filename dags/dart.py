"""DART's filings: the Airflow DAGs `dart` and `dart_corps`.

`dart`: every disclosure of KOSPI and KOSDAQ, looked for every five minutes from 08:00 to 20:00 in Seoul, Monday to
Friday; MONITOR_INTERVAL says another number of minutes, DISCLOSURE_MONITOR_AUTO_START=false keeps it still until
somebody resumes it. `dart_corps`: the list of all companies at 08:00. What a run does, when it waits and how the past
is collected stands on each DAG's page, made by `include.dag_factory`.
"""

from __future__ import annotations

from include.dag_factory import Priority, source_dag
from include.registry import source

dag = source_dag(source("dart"), priority=Priority.FIRST)
corps = source_dag(source("dart"), job="corps", priority=Priority.LISTS)
