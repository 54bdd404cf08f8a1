"""sec_docs: annual and quarterly reports cut into their items (0028_sec_docs.sql)."""

from include.engine.migrations import run_sql_beside

revision = "0028"
down_revision = "0027"


def upgrade() -> None:
    """Run the SQL file beside this one."""
    run_sql_beside(__file__)
