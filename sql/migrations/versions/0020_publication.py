"""publication: the views from which published files are read (0020_publication.sql)."""

from include.engine.migrations import run_sql_beside

revision = "0020"
down_revision = "0019"


def upgrade() -> None:
    """Run the SQL file beside this one."""
    run_sql_beside(__file__)
