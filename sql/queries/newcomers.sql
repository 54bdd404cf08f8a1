-- name: of_stream
-- Companies that are listed and of which a stream does not hold the past, those that were listed last first.
select n.key, count(*) over () as total from filings.newcomers n
 where n.stream = %(stream)s
 order by n.listed_on desc nulls last, n.key
 limit %(limit)s;
