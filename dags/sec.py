"""The SEC's filings: the Airflow DAGs `sec`, `sec_index`, `sec_quarters`, `sec_tickers` and `edgar_weekly`.

`sec`: every new filing of the whole market, every 15 minutes while EDGAR accepts filings (06:00 to 22:10 New York).
`sec_index`: at 23:00 the day's index, which reconciles the day, and the lists of followed companies. `sec_quarters`:
the quarterly indexes, which are rebuilt in the night to Saturday. `sec_tickers`: who is listed where, before the first
tick. `edgar_weekly`: on Sundays annual and quarterly reports are cut into their items. Whose filings are collected
stands in `config/sec.yaml`. What a run does, when it waits and how the past is collected stands on each DAG's page,
made by `include.dag_factory`.
"""

from __future__ import annotations

from include.dag_factory import Priority, source_dag
from include.registry import source

dag = source_dag(source("sec"), priority=Priority.FIRST)
index = source_dag(source("sec"), job="index", priority=Priority.LISTS)
quarters = source_dag(source("sec"), job="quarters", priority=Priority.BULK)
tickers = source_dag(source("sec"), job="tickers", priority=Priority.LISTS)
weekly = source_dag(source("sec"), job="weekly", priority=Priority.BULK)
