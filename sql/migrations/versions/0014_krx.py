"""krx: prices, issues and indices of the Korean exchange (0014_krx.sql)."""

from include.engine.migrations import run_sql_beside

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    """Run the SQL file beside this one."""
    run_sql_beside(__file__)
