-- name: rows
-- Rows of a part in key order, as text in which null and an empty string differ.
copy (select {columns} from {table} where {part} order by {order}) to stdout with (format csv, force_quote *, encoding 'utf8');

-- name: facts
-- How many rows a part has, and the newest fetch among them.
select count(*) as rows, max(fetch_id) as newest_fetch from {table} where {part};

-- name: facts_with_sessions
-- The same with the first and last session date.
select count(*) as rows, max(fetch_id) as newest_fetch, min({session_date}) as first_session,
       max({session_date}) as last_session
  from {table} where {part};

-- name: month
-- The rows of one month, by session date.
{session_date} >= {first} and {session_date} < {after};

-- name: whole_days
-- The rows of one month, of those days alone that are whole.
{session_date} in (select d.session_date from {days} d where d.is_whole and d.session_date >= {first} and d.session_date < {after});

-- name: whole
-- All rows.
true;

-- name: open_items
-- The rows whose items are open.
exists (select 1 from collect.items i where i.stream = {stream} and i.item_key = concat_ws('/', {key}) and i.closed_at is null);

-- name: text_order
-- Text is ordered by its bytes, the same on every server whatever its collation.
{column} collate "C";

-- name: company
-- The rows of one company.
{company} = {value};

-- name: only
-- The rows of one kind.
{column} = {value};

-- name: field
-- A field of a JSON column, as a column of its own.
{values} ->> {field} as {column};

-- name: of_companies
-- Rows of some companies in key order, as text in which null and an empty string differ.
copy (select {columns} from {table} where {company} = any({companies}) and {part} order by {order}) to stdout with (format csv, force_quote *, encoding 'utf8');

-- name: newest_of_companies
-- The newest fetch among the rows of each company.
select {company} as company, max(fetch_id) as newest_fetch from {table} where {company} = any({companies}) and {part} group by 1;
