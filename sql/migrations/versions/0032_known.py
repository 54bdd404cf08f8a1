"""known: what was known on a day, of facts, series and disclosures (0032_known.sql)."""

from include.engine.migrations import run_sql_beside

revision = "0032"
down_revision = "0031"


def upgrade() -> None:
    """Run the SQL file beside this one."""
    run_sql_beside(__file__)
