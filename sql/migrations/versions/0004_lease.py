"""lease: the functions that change a cycle's state (0004_lease.sql)."""

from include.engine.migrations import run_sql_beside

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Run the SQL file beside this one."""
    run_sql_beside(__file__)
