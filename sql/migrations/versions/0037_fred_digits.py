"""fred_digits: values of more digits than fit are kept as text (0037_fred_digits.sql)."""

from include.engine.migrations import run_sql_beside

revision = "0037"
down_revision = "0033"


def upgrade() -> None:
    """Run the SQL file beside this one."""
    run_sql_beside(__file__)
