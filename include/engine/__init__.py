"""Whether, and under which token: leases, fetches, raw objects, staging, merge and the stories of a cycle.

Never: this package knows no source by name and imports no Airflow.
"""
