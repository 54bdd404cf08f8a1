"""dart_sync: statements and report items by company and period, and what is due (0018_dart_sync.sql)."""

from include.engine.migrations import run_sql_beside

revision = "0018"
down_revision = "0017"


def upgrade() -> None:
    """Run the SQL file beside this one."""
    run_sql_beside(__file__)
