-- name: ensure
-- Makes the part of a table for the month of a day where it is missing.
select collect.ensure_month(%(schema)s, %(table)s, %(day)s);
