"""prebuild: files of DART by company and over all companies (0027_prebuild.sql)."""

from include.engine.migrations import run_sql_beside

revision = "0027"
down_revision = "0026"


def upgrade() -> None:
    """Run the SQL file beside this one."""
    run_sql_beside(__file__)
