-- 0037 fred_digits: a value of more digits than the number can hold is kept as text, and its number is null. Expand-only.
-- Roll-back note: the comments may be put back as 0010 has them; nothing else changes.

comment on column market.fred_vintages.value is 'The same as a number; null where it is missing or withdrawn, or has more digits than fit';
comment on column market.fred_vintages_history.value is 'The same as a number; null where it is missing or withdrawn, or has more digits than fit';
