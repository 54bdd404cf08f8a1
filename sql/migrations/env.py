"""Alembic's environment: run the numbered SQL files over the connection that `include.engine.migrations` hands in."""

from alembic import context

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=None,
    version_table="schema_version",
    transaction_per_migration=False,
)
context.run_migrations()
