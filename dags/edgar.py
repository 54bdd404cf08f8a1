"""EDGAR in bulk: the Airflow DAGs `edgar` and `edgar_statements`.

At 13:30 in Seoul the SEC's file of all companies' facts is looked at, hourly until it changed; what changed of it is
kept, and the files of those companies are made anew, by as many lanes as there are workers. `edgar_statements` looks
at the quarterly statement data sets. What a run does, when it waits and how files are made again stands on each DAG's
page, made by `include.dag_factory`.
"""

from __future__ import annotations

from include.dag_factory import Priority, source_dag
from include.registry import source

dag = source_dag(source("edgar"), priority=Priority.BULK)
statements = source_dag(source("edgar"), job="statements", priority=Priority.BULK)
