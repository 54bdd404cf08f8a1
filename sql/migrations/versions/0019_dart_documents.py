"""dart_documents: documents of periodic reports, which holds, and what was restated (0019_dart_documents.sql)."""

from include.engine.migrations import run_sql_beside

revision = "0019"
down_revision = "0018"


def upgrade() -> None:
    """Run the SQL file beside this one."""
    run_sql_beside(__file__)
