-- name: put
-- Rows of a table as the journal has them; what was written later is what holds.
insert into {table} ({columns}) overriding system value
select {columns} from jsonb_populate_recordset(null::{table}, %(rows)s::jsonb)
on conflict ({key}) do update set {changes};
