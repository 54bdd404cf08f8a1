-- name: held
-- What a stream asks about: the values of a column where a flag is true, in the order of their bytes.
select distinct {column} collate "C" as subject from {table} where {flag} order by 1;
