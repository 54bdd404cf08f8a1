"""Alpaca's bars of US stocks: the Airflow DAGs `alpaca` and `alpaca_intraday`.

`alpaca`: assets, trading days and daily bars at 17:30 New York, provisional, and at 20:20, final. `alpaca_intraday`:
minute bars once after the extended session, or every few minutes during it where config/schedules.yaml says so. What a
run does, when it waits and how the past is collected stands on each DAG's page, made by `include.dag_factory`.
"""

from __future__ import annotations

from include.dag_factory import Priority, source_dag
from include.registry import source

dag = source_dag(source("alpaca"), priority=Priority.DAILY_MARKET)
intraday = source_dag(source("alpaca"), job="intraday", priority=Priority.BULK)
