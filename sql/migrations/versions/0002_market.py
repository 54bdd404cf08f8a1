"""market: FINRA short sale volume (0002_market.sql)."""

from include.engine.migrations import run_sql_beside

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Run the SQL file beside this one."""
    run_sql_beside(__file__)
