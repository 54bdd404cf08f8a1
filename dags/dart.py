"""DART's filings: the Airflow DAGs `dart`, `dart_corps`, `dart_sync` and `dart_new_stocks`.

`dart`: every disclosure of KOSPI and KOSDAQ, looked for every five minutes from 08:00 to 20:00 in Seoul, Monday to
Friday; MONITOR_INTERVAL says another number of minutes, DISCLOSURE_MONITOR_AUTO_START=false keeps it still until
somebody resumes it. `dart_corps`: the list of all companies at 08:00. `dart_sync`: at 03:00 and 15:00 what the periodic
reports of the last 60 days have and each category does not hold; the categories run side by side. `dart_new_stocks`:
the past of companies that were listed since. What a run does, when it waits and how the past is collected stands on
each DAG's page, made by `include.dag_factory`.
"""

from __future__ import annotations

from include.dag_factory import Priority, newcomers_dag, source_dag, when
from include.registry import new_companies, source

dag = source_dag(source("dart"), priority=Priority.FIRST)
corps = source_dag(source("dart"), job="corps", priority=Priority.LISTS)
sync = source_dag(source("dart"), job="sync", priority=Priority.BULK, side_by_side=True)
newcomers = newcomers_dag(
    source("dart"),
    "dart_new_stocks",
    when("dart_new_stocks", "0 10 * * *", "Asia/Seoul"),
    streams=new_companies().streams,
    limit=new_companies().limit,
    after="kind.companies",
)
