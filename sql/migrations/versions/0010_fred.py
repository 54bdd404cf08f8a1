"""fred: economic series with every revision (0010_fred.sql)."""

from include.engine.migrations import run_sql_beside

revision = "0010"
down_revision = "0006"


def upgrade() -> None:
    """Run the SQL file beside this one."""
    run_sql_beside(__file__)
