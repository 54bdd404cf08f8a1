"""alpaca: bars, assets and the calendar (0011_alpaca.sql)."""

from include.engine.migrations import run_sql_beside

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    """Run the SQL file beside this one."""
    run_sql_beside(__file__)
