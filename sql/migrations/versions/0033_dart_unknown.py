"""dart_unknown: what DART is asked where closing month or list is not known (0033_dart_unknown.sql)."""

from include.engine.migrations import run_sql_beside

revision = "0033"
down_revision = "0032"


def upgrade() -> None:
    """Run the SQL file beside this one."""
    run_sql_beside(__file__)
