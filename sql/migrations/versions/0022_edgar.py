"""edgar: archives of which what changed is kept, and files that are made of it (0022_edgar.sql)."""

from include.engine.migrations import run_sql_beside

revision = "0022"
down_revision = "0021"


def upgrade() -> None:
    """Run the SQL file beside this one."""
    run_sql_beside(__file__)
