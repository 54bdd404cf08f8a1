"""collect: the ledger of collecting (0001_collect.sql)."""

from include.engine.migrations import run_sql_beside

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Run the SQL file beside this one."""
    run_sql_beside(__file__)
