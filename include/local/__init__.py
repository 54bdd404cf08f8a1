"""The stack on one machine: embedded PostgreSQL, Airflow's processes, the sandbox, and their supervisor.

Promises: everything listens on loopback only, state stays in the state directory, and only processes and
files that this installation made are ever ended or deleted. Never: no engine, container or account is needed.
"""
