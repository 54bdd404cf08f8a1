"""dart: filings as they appear, the queue of the analysis, the list of all companies (0017_dart.sql)."""

from include.engine.migrations import run_sql_beside

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    """Run the SQL file beside this one."""
    run_sql_beside(__file__)
