"""edgar_facts: facts of the companies of a configured tier, as rows (0029_edgar_facts.sql)."""

from include.engine.migrations import run_sql_beside

revision = "0029"
down_revision = "0028"


def upgrade() -> None:
    """Run the SQL file beside this one."""
    run_sql_beside(__file__)
