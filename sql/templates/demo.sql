-- name: count
-- How many rows a table holds.
select count(*) as rows from {table}
