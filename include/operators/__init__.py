"""What Airflow does with the engine: operators that resolve connections, work in ticks and say what happened.

Promises: an operator decides nothing about data; it hands the engine what it needs, reads what came of it from the
rows, and turns that into a task state and one sentence. Never: no provider is imported when a DAG file is parsed.
"""
