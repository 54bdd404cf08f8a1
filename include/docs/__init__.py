"""Pages of `docs/` that are made from the declarations: DAGs, streams, tables, releases, API, settings, alerts."""
