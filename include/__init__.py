"""Daybook's own code: everything that is not a DAG file, a plugin file or SQL."""
