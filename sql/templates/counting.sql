-- name: rows
-- How many rows a table holds.
select count(*) as rows from {table}
