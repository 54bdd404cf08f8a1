"""analyses: the view that files of analyses are read from, and which months changed (0026_analyses_files.sql)."""

from include.engine.migrations import run_sql_beside

revision = "0026"
down_revision = "0023"


def upgrade() -> None:
    """Run the SQL file beside this one."""
    run_sql_beside(__file__)
