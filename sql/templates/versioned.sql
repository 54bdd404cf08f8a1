-- name: create
-- A copy of a table beside it, for a replay that must not touch the original.
create table if not exists {copy} (like {original} including all);

-- name: describe
-- Says which run made the copy.
comment on table {copy} is {text};
