-- 0011 alpaca: bars in parts of a month, assets, the calendar, and what was asked for in vain. Expand-only.
-- Roll-back note: the tables may be dropped once no stream of alpaca writes them and what is wanted of them is exported.

create function collect.ensure_month(of_schema text, parent text, day date) returns boolean
    language plpgsql security definer set search_path = pg_catalog as $$
declare
    part  text := parent || '_' || to_char(day, 'YYYYMM');
    first timestamptz := date_trunc('month', day::timestamp) at time zone 'America/New_York';
    after timestamptz := (date_trunc('month', day::timestamp) + interval '1 month') at time zone 'America/New_York';
begin
    if to_regclass(format('%I.%I', of_schema, part)) is not null then
        return false;
    end if;
    perform pg_advisory_xact_lock(hashtextextended('months of ' || of_schema || '.' || parent, 9011));
    if to_regclass(format('%I.%I', of_schema, part)) is not null then
        return false;
    end if;
    -- Made beside the table and then attached: that locks out no reader and no writer of the other months.
    execute format('create table %I.%I (like %I.%I including all)', of_schema, part, of_schema, parent);
    execute format('comment on table %I.%I is %L', of_schema, part, 'The month ' || to_char(day, 'YYYY-MM') || ' of ' || parent);
    execute format('alter table %I.%I attach partition %I.%I for values from (%L) to (%L)',
                   of_schema, parent, of_schema, part, first, after);
    return true;
end
$$;
comment on function collect.ensure_month(text, text, date) is
    'Makes the part of a table for the month of a day, in New York, where it is missing; says whether it did';

create table market.alpaca_daily_bars (
    session_date    date not null,
    symbol          text collate "C" not null,
    timeframe       text collate "C" not null,
    ts              timestamptz(6) not null,
    feed            text collate "C" not null,
    adjustment      text collate "C" not null,
    asof            text not null,
    open            numeric not null,
    high            numeric not null,
    low             numeric not null,
    close           numeric not null,
    volume          numeric not null,
    trades          bigint,
    vwap            numeric,
    unit            text not null,
    fetch_id        bigint not null,
    sent_at         timestamptz(6) not null,
    parser_version  integer not null,
    cycle_id        bigint not null,
    attempt         integer not null,
    extra           jsonb,
    primary key (symbol, timeframe, ts, feed, adjustment)
) partition by range (ts);
comment on table market.alpaca_daily_bars is 'Price bars of a day or longer, raw and adjusted, by symbol and feed (Alpaca); a part for each month';
comment on column market.alpaca_daily_bars.session_date is 'Day of the bar''s start, New York';
comment on column market.alpaca_daily_bars.symbol is 'Symbol as Alpaca spells it: class shares with a dot, e.g. BRK.B';
comment on column market.alpaca_daily_bars.timeframe is 'Length of the bar as Alpaca names it, e.g. 1Day or 1Min';
comment on column market.alpaca_daily_bars.ts is 'Start of the bar; for days and longer midnight in New York';
comment on column market.alpaca_daily_bars.feed is 'Feed that the bar was made from, e.g. sip or iex; never mixed';
comment on column market.alpaca_daily_bars.adjustment is 'raw, or how prices and volumes are adjusted, e.g. split';
comment on column market.alpaca_daily_bars.asof is 'Date by which Alpaca mapped the symbol to a company; - where symbols are literal';
comment on column market.alpaca_daily_bars.open is 'First price';
comment on column market.alpaca_daily_bars.high is 'Highest price';
comment on column market.alpaca_daily_bars.low is 'Lowest price';
comment on column market.alpaca_daily_bars.close is 'Last price';
comment on column market.alpaca_daily_bars.volume is 'Shares traded';
comment on column market.alpaca_daily_bars.trades is 'Number of trades; null where it was not given';
comment on column market.alpaca_daily_bars.vwap is 'Volume-weighted average price; 0 where nothing was traded';
comment on column market.alpaca_daily_bars.unit is 'Unit that gave the row';
comment on column market.alpaca_daily_bars.fetch_id is 'Fetch that gave these values first';
comment on column market.alpaca_daily_bars.sent_at is 'When that fetch was sent';
comment on column market.alpaca_daily_bars.parser_version is 'Parser that read it';
comment on column market.alpaca_daily_bars.cycle_id is 'Cycle that wrote it';
comment on column market.alpaca_daily_bars.attempt is 'Claim of that cycle';
comment on column market.alpaca_daily_bars.extra is 'Columns of the upstream that nobody knew yet';
create index alpaca_daily_bars_by_unit on market.alpaca_daily_bars (unit);
create index alpaca_daily_bars_by_time on market.alpaca_daily_bars using brin (ts);

create table market.alpaca_daily_bars_history (
    like market.alpaca_daily_bars,
    ended_at  timestamptz(6) not null,
    reason    text not null check (reason in ('revised', 'withdrawn', 'parser')),
    primary key (symbol, timeframe, ts, feed, adjustment, sent_at, reason, parser_version)
);
comment on table market.alpaca_daily_bars_history is 'Values of alpaca_daily_bars that were once right, until when and why no longer';
comment on column market.alpaca_daily_bars_history.session_date is 'Day of the bar''s start, New York';
comment on column market.alpaca_daily_bars_history.symbol is 'Symbol as Alpaca spells it: class shares with a dot, e.g. BRK.B';
comment on column market.alpaca_daily_bars_history.timeframe is 'Length of the bar as Alpaca names it, e.g. 1Day or 1Min';
comment on column market.alpaca_daily_bars_history.ts is 'Start of the bar; for days and longer midnight in New York';
comment on column market.alpaca_daily_bars_history.feed is 'Feed that the bar was made from, e.g. sip or iex; never mixed';
comment on column market.alpaca_daily_bars_history.adjustment is 'raw, or how prices and volumes are adjusted, e.g. split';
comment on column market.alpaca_daily_bars_history.asof is 'Date by which Alpaca mapped the symbol to a company; - where symbols are literal';
comment on column market.alpaca_daily_bars_history.open is 'First price';
comment on column market.alpaca_daily_bars_history.high is 'Highest price';
comment on column market.alpaca_daily_bars_history.low is 'Lowest price';
comment on column market.alpaca_daily_bars_history.close is 'Last price';
comment on column market.alpaca_daily_bars_history.volume is 'Shares traded';
comment on column market.alpaca_daily_bars_history.trades is 'Number of trades; null where it was not given';
comment on column market.alpaca_daily_bars_history.vwap is 'Volume-weighted average price; 0 where nothing was traded';
comment on column market.alpaca_daily_bars_history.unit is 'Unit that gave the row';
comment on column market.alpaca_daily_bars_history.fetch_id is 'Fetch that gave these values first';
comment on column market.alpaca_daily_bars_history.sent_at is 'When that fetch was sent';
comment on column market.alpaca_daily_bars_history.parser_version is 'Parser that read it';
comment on column market.alpaca_daily_bars_history.cycle_id is 'Cycle that wrote it';
comment on column market.alpaca_daily_bars_history.attempt is 'Claim of that cycle';
comment on column market.alpaca_daily_bars_history.extra is 'Columns of the upstream that nobody knew yet';
comment on column market.alpaca_daily_bars_history.ended_at is 'When the fetch was sent that says otherwise';
comment on column market.alpaca_daily_bars_history.reason is 'revised by a newer answer, withdrawn from it, or read otherwise by a newer parser';
create index alpaca_daily_bars_history_by_unit on market.alpaca_daily_bars_history (unit);

create table market.alpaca_intraday_bars (
    session_date    date not null,
    symbol          text collate "C" not null,
    timeframe       text collate "C" not null,
    ts              timestamptz(6) not null,
    feed            text collate "C" not null,
    adjustment      text collate "C" not null,
    asof            text not null,
    open            numeric not null,
    high            numeric not null,
    low             numeric not null,
    close           numeric not null,
    volume          numeric not null,
    trades          bigint,
    vwap            numeric,
    unit            text not null,
    fetch_id        bigint not null,
    sent_at         timestamptz(6) not null,
    parser_version  integer not null,
    cycle_id        bigint not null,
    attempt         integer not null,
    extra           jsonb,
    primary key (symbol, timeframe, ts, feed, adjustment)
) partition by range (ts);
comment on table market.alpaca_intraday_bars is 'Price bars shorter than a day, extended hours too, by symbol and feed (Alpaca); a part for each month';
comment on column market.alpaca_intraday_bars.session_date is 'Day of the bar''s start, New York';
comment on column market.alpaca_intraday_bars.symbol is 'Symbol as Alpaca spells it: class shares with a dot, e.g. BRK.B';
comment on column market.alpaca_intraday_bars.timeframe is 'Length of the bar as Alpaca names it, e.g. 1Day or 1Min';
comment on column market.alpaca_intraday_bars.ts is 'Start of the bar; for days and longer midnight in New York';
comment on column market.alpaca_intraday_bars.feed is 'Feed that the bar was made from, e.g. sip or iex; never mixed';
comment on column market.alpaca_intraday_bars.adjustment is 'raw, or how prices and volumes are adjusted, e.g. split';
comment on column market.alpaca_intraday_bars.asof is 'Date by which Alpaca mapped the symbol to a company; - where symbols are literal';
comment on column market.alpaca_intraday_bars.open is 'First price';
comment on column market.alpaca_intraday_bars.high is 'Highest price';
comment on column market.alpaca_intraday_bars.low is 'Lowest price';
comment on column market.alpaca_intraday_bars.close is 'Last price';
comment on column market.alpaca_intraday_bars.volume is 'Shares traded';
comment on column market.alpaca_intraday_bars.trades is 'Number of trades; null where it was not given';
comment on column market.alpaca_intraday_bars.vwap is 'Volume-weighted average price; 0 where nothing was traded';
comment on column market.alpaca_intraday_bars.unit is 'Unit that gave the row';
comment on column market.alpaca_intraday_bars.fetch_id is 'Fetch that gave these values first';
comment on column market.alpaca_intraday_bars.sent_at is 'When that fetch was sent';
comment on column market.alpaca_intraday_bars.parser_version is 'Parser that read it';
comment on column market.alpaca_intraday_bars.cycle_id is 'Cycle that wrote it';
comment on column market.alpaca_intraday_bars.attempt is 'Claim of that cycle';
comment on column market.alpaca_intraday_bars.extra is 'Columns of the upstream that nobody knew yet';
create index alpaca_intraday_bars_by_unit on market.alpaca_intraday_bars (unit);
create index alpaca_intraday_bars_by_time on market.alpaca_intraday_bars using brin (ts);

create table market.alpaca_intraday_bars_history (
    like market.alpaca_intraday_bars,
    ended_at  timestamptz(6) not null,
    reason    text not null check (reason in ('revised', 'withdrawn', 'parser')),
    primary key (symbol, timeframe, ts, feed, adjustment, sent_at, reason, parser_version)
);
comment on table market.alpaca_intraday_bars_history is 'Values of alpaca_intraday_bars that were once right, until when and why no longer';
comment on column market.alpaca_intraday_bars_history.session_date is 'Day of the bar''s start, New York';
comment on column market.alpaca_intraday_bars_history.symbol is 'Symbol as Alpaca spells it: class shares with a dot, e.g. BRK.B';
comment on column market.alpaca_intraday_bars_history.timeframe is 'Length of the bar as Alpaca names it, e.g. 1Day or 1Min';
comment on column market.alpaca_intraday_bars_history.ts is 'Start of the bar; for days and longer midnight in New York';
comment on column market.alpaca_intraday_bars_history.feed is 'Feed that the bar was made from, e.g. sip or iex; never mixed';
comment on column market.alpaca_intraday_bars_history.adjustment is 'raw, or how prices and volumes are adjusted, e.g. split';
comment on column market.alpaca_intraday_bars_history.asof is 'Date by which Alpaca mapped the symbol to a company; - where symbols are literal';
comment on column market.alpaca_intraday_bars_history.open is 'First price';
comment on column market.alpaca_intraday_bars_history.high is 'Highest price';
comment on column market.alpaca_intraday_bars_history.low is 'Lowest price';
comment on column market.alpaca_intraday_bars_history.close is 'Last price';
comment on column market.alpaca_intraday_bars_history.volume is 'Shares traded';
comment on column market.alpaca_intraday_bars_history.trades is 'Number of trades; null where it was not given';
comment on column market.alpaca_intraday_bars_history.vwap is 'Volume-weighted average price; 0 where nothing was traded';
comment on column market.alpaca_intraday_bars_history.unit is 'Unit that gave the row';
comment on column market.alpaca_intraday_bars_history.fetch_id is 'Fetch that gave these values first';
comment on column market.alpaca_intraday_bars_history.sent_at is 'When that fetch was sent';
comment on column market.alpaca_intraday_bars_history.parser_version is 'Parser that read it';
comment on column market.alpaca_intraday_bars_history.cycle_id is 'Cycle that wrote it';
comment on column market.alpaca_intraday_bars_history.attempt is 'Claim of that cycle';
comment on column market.alpaca_intraday_bars_history.extra is 'Columns of the upstream that nobody knew yet';
comment on column market.alpaca_intraday_bars_history.ended_at is 'When the fetch was sent that says otherwise';
comment on column market.alpaca_intraday_bars_history.reason is 'revised by a newer answer, withdrawn from it, or read otherwise by a newer parser';
create index alpaca_intraday_bars_history_by_unit on market.alpaca_intraday_bars_history (unit);

create table market.alpaca_daily_asked_none (
    session_date    date not null,
    symbol          text not null,
    timeframe       text not null,
    feed            text not null,
    adjustment      text not null,
    asof            text not null,
    unit            text not null,
    fetch_id        bigint not null,
    sent_at         timestamptz(6) not null,
    parser_version  integer not null,
    cycle_id        bigint not null,
    attempt         integer not null,
    extra           jsonb,
    primary key (session_date, symbol, timeframe, feed, adjustment)
);
comment on table market.alpaca_daily_asked_none is 'Symbols that were asked for and had no bar of a day or longer in a whole period: not traded, not listed, or renamed';
comment on column market.alpaca_daily_asked_none.session_date is 'First day of the period that was asked for';
comment on column market.alpaca_daily_asked_none.symbol is 'Symbol that was asked for';
comment on column market.alpaca_daily_asked_none.timeframe is 'Length of the bars that were asked for';
comment on column market.alpaca_daily_asked_none.feed is 'Feed that was asked for';
comment on column market.alpaca_daily_asked_none.adjustment is 'Adjustment that was asked for';
comment on column market.alpaca_daily_asked_none.asof is 'Date by which Alpaca mapped the symbol; - where symbols are literal';
comment on column market.alpaca_daily_asked_none.unit is 'Unit that gave the row';
comment on column market.alpaca_daily_asked_none.fetch_id is 'Fetch that gave these values first';
comment on column market.alpaca_daily_asked_none.sent_at is 'When that fetch was sent';
comment on column market.alpaca_daily_asked_none.parser_version is 'Parser that read it';
comment on column market.alpaca_daily_asked_none.cycle_id is 'Cycle that wrote it';
comment on column market.alpaca_daily_asked_none.attempt is 'Claim of that cycle';
comment on column market.alpaca_daily_asked_none.extra is 'Columns of the upstream that nobody knew yet';
create index alpaca_daily_asked_none_by_unit on market.alpaca_daily_asked_none (unit);

create table market.alpaca_daily_asked_none_history (
    like market.alpaca_daily_asked_none,
    ended_at  timestamptz(6) not null,
    reason    text not null check (reason in ('revised', 'withdrawn', 'parser')),
    primary key (session_date, symbol, timeframe, feed, adjustment, sent_at, reason, parser_version)
);
comment on table market.alpaca_daily_asked_none_history is 'Values of alpaca_daily_asked_none that were once right, until when and why no longer';
comment on column market.alpaca_daily_asked_none_history.session_date is 'First day of the period that was asked for';
comment on column market.alpaca_daily_asked_none_history.symbol is 'Symbol that was asked for';
comment on column market.alpaca_daily_asked_none_history.timeframe is 'Length of the bars that were asked for';
comment on column market.alpaca_daily_asked_none_history.feed is 'Feed that was asked for';
comment on column market.alpaca_daily_asked_none_history.adjustment is 'Adjustment that was asked for';
comment on column market.alpaca_daily_asked_none_history.asof is 'Date by which Alpaca mapped the symbol; - where symbols are literal';
comment on column market.alpaca_daily_asked_none_history.unit is 'Unit that gave the row';
comment on column market.alpaca_daily_asked_none_history.fetch_id is 'Fetch that gave these values first';
comment on column market.alpaca_daily_asked_none_history.sent_at is 'When that fetch was sent';
comment on column market.alpaca_daily_asked_none_history.parser_version is 'Parser that read it';
comment on column market.alpaca_daily_asked_none_history.cycle_id is 'Cycle that wrote it';
comment on column market.alpaca_daily_asked_none_history.attempt is 'Claim of that cycle';
comment on column market.alpaca_daily_asked_none_history.extra is 'Columns of the upstream that nobody knew yet';
comment on column market.alpaca_daily_asked_none_history.ended_at is 'When the fetch was sent that says otherwise';
comment on column market.alpaca_daily_asked_none_history.reason is 'revised by a newer answer, withdrawn from it, or read otherwise by a newer parser';
create index alpaca_daily_asked_none_history_by_unit on market.alpaca_daily_asked_none_history (unit);

create table market.alpaca_intraday_asked_none (
    session_date    date not null,
    symbol          text not null,
    timeframe       text not null,
    feed            text not null,
    adjustment      text not null,
    asof            text not null,
    unit            text not null,
    fetch_id        bigint not null,
    sent_at         timestamptz(6) not null,
    parser_version  integer not null,
    cycle_id        bigint not null,
    attempt         integer not null,
    extra           jsonb,
    primary key (session_date, symbol, timeframe, feed, adjustment)
);
comment on table market.alpaca_intraday_asked_none is 'Symbols that were asked for and had no bar shorter than a day in a whole period: not traded, not listed, or renamed';
comment on column market.alpaca_intraday_asked_none.session_date is 'First day of the period that was asked for';
comment on column market.alpaca_intraday_asked_none.symbol is 'Symbol that was asked for';
comment on column market.alpaca_intraday_asked_none.timeframe is 'Length of the bars that were asked for';
comment on column market.alpaca_intraday_asked_none.feed is 'Feed that was asked for';
comment on column market.alpaca_intraday_asked_none.adjustment is 'Adjustment that was asked for';
comment on column market.alpaca_intraday_asked_none.asof is 'Date by which Alpaca mapped the symbol; - where symbols are literal';
comment on column market.alpaca_intraday_asked_none.unit is 'Unit that gave the row';
comment on column market.alpaca_intraday_asked_none.fetch_id is 'Fetch that gave these values first';
comment on column market.alpaca_intraday_asked_none.sent_at is 'When that fetch was sent';
comment on column market.alpaca_intraday_asked_none.parser_version is 'Parser that read it';
comment on column market.alpaca_intraday_asked_none.cycle_id is 'Cycle that wrote it';
comment on column market.alpaca_intraday_asked_none.attempt is 'Claim of that cycle';
comment on column market.alpaca_intraday_asked_none.extra is 'Columns of the upstream that nobody knew yet';
create index alpaca_intraday_asked_none_by_unit on market.alpaca_intraday_asked_none (unit);

create table market.alpaca_intraday_asked_none_history (
    like market.alpaca_intraday_asked_none,
    ended_at  timestamptz(6) not null,
    reason    text not null check (reason in ('revised', 'withdrawn', 'parser')),
    primary key (session_date, symbol, timeframe, feed, adjustment, sent_at, reason, parser_version)
);
comment on table market.alpaca_intraday_asked_none_history is 'Values of alpaca_intraday_asked_none that were once right, until when and why no longer';
comment on column market.alpaca_intraday_asked_none_history.session_date is 'First day of the period that was asked for';
comment on column market.alpaca_intraday_asked_none_history.symbol is 'Symbol that was asked for';
comment on column market.alpaca_intraday_asked_none_history.timeframe is 'Length of the bars that were asked for';
comment on column market.alpaca_intraday_asked_none_history.feed is 'Feed that was asked for';
comment on column market.alpaca_intraday_asked_none_history.adjustment is 'Adjustment that was asked for';
comment on column market.alpaca_intraday_asked_none_history.asof is 'Date by which Alpaca mapped the symbol; - where symbols are literal';
comment on column market.alpaca_intraday_asked_none_history.unit is 'Unit that gave the row';
comment on column market.alpaca_intraday_asked_none_history.fetch_id is 'Fetch that gave these values first';
comment on column market.alpaca_intraday_asked_none_history.sent_at is 'When that fetch was sent';
comment on column market.alpaca_intraday_asked_none_history.parser_version is 'Parser that read it';
comment on column market.alpaca_intraday_asked_none_history.cycle_id is 'Cycle that wrote it';
comment on column market.alpaca_intraday_asked_none_history.attempt is 'Claim of that cycle';
comment on column market.alpaca_intraday_asked_none_history.extra is 'Columns of the upstream that nobody knew yet';
comment on column market.alpaca_intraday_asked_none_history.ended_at is 'When the fetch was sent that says otherwise';
comment on column market.alpaca_intraday_asked_none_history.reason is 'revised by a newer answer, withdrawn from it, or read otherwise by a newer parser';
create index alpaca_intraday_asked_none_history_by_unit on market.alpaca_intraday_asked_none_history (unit);

create table market.alpaca_assets (
    asset_id            text not null,
    symbol              text not null,
    name                text,
    asset_class         text not null,
    exchange            text not null,
    status              text not null,
    is_collected        boolean not null,
    is_tradable         boolean not null,
    is_marginable       boolean not null,
    is_shortable        boolean not null,
    is_easy_to_borrow   boolean not null,
    is_fractionable     boolean not null,
    borrow_status       text,
    maintenance_margin  numeric,
    margin_long         numeric,
    margin_short        numeric,
    attributes          jsonb not null,
    unit                text not null,
    fetch_id            bigint not null,
    sent_at             timestamptz(6) not null,
    parser_version      integer not null,
    cycle_id            bigint not null,
    attempt             integer not null,
    extra               jsonb,
    primary key (asset_id)
);
comment on table market.alpaca_assets is 'US stocks that Alpaca knows, as listed last; earlier listings are in the history (Alpaca)';
comment on column market.alpaca_assets.asset_id is 'Alpaca''s number of the asset; it stays when the symbol changes';
comment on column market.alpaca_assets.symbol is 'Symbol now; another asset may have had it before';
comment on column market.alpaca_assets.name is 'Name, null where there is none';
comment on column market.alpaca_assets.asset_class is 'Class, e.g. us_equity';
comment on column market.alpaca_assets.exchange is 'Exchange where it is listed, OTC where it is on none';
comment on column market.alpaca_assets.status is 'active, or inactive where it is not listed any more';
comment on column market.alpaca_assets.is_collected is 'Whether bars are asked for by default: active and listed on an exchange';
comment on column market.alpaca_assets.is_tradable is 'Whether Alpaca trades it';
comment on column market.alpaca_assets.is_marginable is 'Whether it may be bought on margin';
comment on column market.alpaca_assets.is_shortable is 'Whether it may be sold short';
comment on column market.alpaca_assets.is_easy_to_borrow is 'Whether it is easy to borrow';
comment on column market.alpaca_assets.is_fractionable is 'Whether parts of a share can be traded';
comment on column market.alpaca_assets.borrow_status is 'How hard it is to borrow, null where it is not said';
comment on column market.alpaca_assets.maintenance_margin is 'Maintenance margin in per cent';
comment on column market.alpaca_assets.margin_long is 'Margin for buying in per cent';
comment on column market.alpaca_assets.margin_short is 'Margin for selling short in per cent';
comment on column market.alpaca_assets.attributes is 'Further properties as Alpaca names them, in name order';
comment on column market.alpaca_assets.unit is 'Unit that gave the row';
comment on column market.alpaca_assets.fetch_id is 'Fetch that gave these values first';
comment on column market.alpaca_assets.sent_at is 'When that fetch was sent';
comment on column market.alpaca_assets.parser_version is 'Parser that read it';
comment on column market.alpaca_assets.cycle_id is 'Cycle that wrote it';
comment on column market.alpaca_assets.attempt is 'Claim of that cycle';
comment on column market.alpaca_assets.extra is 'Columns of the upstream that nobody knew yet';
create index alpaca_assets_by_unit on market.alpaca_assets (unit);
create index alpaca_assets_by_symbol on market.alpaca_assets (symbol);

create table market.alpaca_assets_history (
    like market.alpaca_assets,
    ended_at  timestamptz(6) not null,
    reason    text not null check (reason in ('revised', 'withdrawn', 'parser')),
    primary key (asset_id, sent_at, reason, parser_version)
);
comment on table market.alpaca_assets_history is 'Values of alpaca_assets that were once right, until when and why no longer';
comment on column market.alpaca_assets_history.asset_id is 'Alpaca''s number of the asset; it stays when the symbol changes';
comment on column market.alpaca_assets_history.symbol is 'Symbol now; another asset may have had it before';
comment on column market.alpaca_assets_history.name is 'Name, null where there is none';
comment on column market.alpaca_assets_history.asset_class is 'Class, e.g. us_equity';
comment on column market.alpaca_assets_history.exchange is 'Exchange where it is listed, OTC where it is on none';
comment on column market.alpaca_assets_history.status is 'active, or inactive where it is not listed any more';
comment on column market.alpaca_assets_history.is_collected is 'Whether bars are asked for by default: active and listed on an exchange';
comment on column market.alpaca_assets_history.is_tradable is 'Whether Alpaca trades it';
comment on column market.alpaca_assets_history.is_marginable is 'Whether it may be bought on margin';
comment on column market.alpaca_assets_history.is_shortable is 'Whether it may be sold short';
comment on column market.alpaca_assets_history.is_easy_to_borrow is 'Whether it is easy to borrow';
comment on column market.alpaca_assets_history.is_fractionable is 'Whether parts of a share can be traded';
comment on column market.alpaca_assets_history.borrow_status is 'How hard it is to borrow, null where it is not said';
comment on column market.alpaca_assets_history.maintenance_margin is 'Maintenance margin in per cent';
comment on column market.alpaca_assets_history.margin_long is 'Margin for buying in per cent';
comment on column market.alpaca_assets_history.margin_short is 'Margin for selling short in per cent';
comment on column market.alpaca_assets_history.attributes is 'Further properties as Alpaca names them, in name order';
comment on column market.alpaca_assets_history.unit is 'Unit that gave the row';
comment on column market.alpaca_assets_history.fetch_id is 'Fetch that gave these values first';
comment on column market.alpaca_assets_history.sent_at is 'When that fetch was sent';
comment on column market.alpaca_assets_history.parser_version is 'Parser that read it';
comment on column market.alpaca_assets_history.cycle_id is 'Cycle that wrote it';
comment on column market.alpaca_assets_history.attempt is 'Claim of that cycle';
comment on column market.alpaca_assets_history.extra is 'Columns of the upstream that nobody knew yet';
comment on column market.alpaca_assets_history.ended_at is 'When the fetch was sent that says otherwise';
comment on column market.alpaca_assets_history.reason is 'revised by a newer answer, withdrawn from it, or read otherwise by a newer parser';
create index alpaca_assets_history_by_unit on market.alpaca_assets_history (unit);

create table market.alpaca_calendar (
    session_date        date not null,
    opens_at            timestamptz(6) not null,
    closes_at           timestamptz(6) not null,
    extended_opens_at   timestamptz(6),
    extended_closes_at  timestamptz(6),
    settles_on          date,
    unit                text not null,
    fetch_id            bigint not null,
    sent_at             timestamptz(6) not null,
    parser_version      integer not null,
    cycle_id            bigint not null,
    attempt             integer not null,
    extra               jsonb,
    primary key (session_date)
);
comment on table market.alpaca_calendar is 'Trading days of the US stock market with their hours (Alpaca)';
comment on column market.alpaca_calendar.session_date is 'Trading day, New York';
comment on column market.alpaca_calendar.opens_at is 'Opening of the regular session';
comment on column market.alpaca_calendar.closes_at is 'Its close; earlier on short days';
comment on column market.alpaca_calendar.extended_opens_at is 'Opening of the extended session';
comment on column market.alpaca_calendar.extended_closes_at is 'Its close';
comment on column market.alpaca_calendar.settles_on is 'Day on which trades of the day settle';
comment on column market.alpaca_calendar.unit is 'Unit that gave the row';
comment on column market.alpaca_calendar.fetch_id is 'Fetch that gave these values first';
comment on column market.alpaca_calendar.sent_at is 'When that fetch was sent';
comment on column market.alpaca_calendar.parser_version is 'Parser that read it';
comment on column market.alpaca_calendar.cycle_id is 'Cycle that wrote it';
comment on column market.alpaca_calendar.attempt is 'Claim of that cycle';
comment on column market.alpaca_calendar.extra is 'Columns of the upstream that nobody knew yet';
create index alpaca_calendar_by_unit on market.alpaca_calendar (unit);

create table market.alpaca_calendar_history (
    like market.alpaca_calendar,
    ended_at  timestamptz(6) not null,
    reason    text not null check (reason in ('revised', 'withdrawn', 'parser')),
    primary key (session_date, sent_at, reason, parser_version)
);
comment on table market.alpaca_calendar_history is 'Values of alpaca_calendar that were once right, until when and why no longer';
comment on column market.alpaca_calendar_history.session_date is 'Trading day, New York';
comment on column market.alpaca_calendar_history.opens_at is 'Opening of the regular session';
comment on column market.alpaca_calendar_history.closes_at is 'Its close; earlier on short days';
comment on column market.alpaca_calendar_history.extended_opens_at is 'Opening of the extended session';
comment on column market.alpaca_calendar_history.extended_closes_at is 'Its close';
comment on column market.alpaca_calendar_history.settles_on is 'Day on which trades of the day settle';
comment on column market.alpaca_calendar_history.unit is 'Unit that gave the row';
comment on column market.alpaca_calendar_history.fetch_id is 'Fetch that gave these values first';
comment on column market.alpaca_calendar_history.sent_at is 'When that fetch was sent';
comment on column market.alpaca_calendar_history.parser_version is 'Parser that read it';
comment on column market.alpaca_calendar_history.cycle_id is 'Cycle that wrote it';
comment on column market.alpaca_calendar_history.attempt is 'Claim of that cycle';
comment on column market.alpaca_calendar_history.extra is 'Columns of the upstream that nobody knew yet';
comment on column market.alpaca_calendar_history.ended_at is 'When the fetch was sent that says otherwise';
comment on column market.alpaca_calendar_history.reason is 'revised by a newer answer, withdrawn from it, or read otherwise by a newer parser';
create index alpaca_calendar_history_by_unit on market.alpaca_calendar_history (unit);

create view market.alpaca_listed_assets as
    select a.* from market.alpaca_assets a
     where not exists (select 1 from collect.items i
                        where i.stream = 'alpaca.assets' and i.item_key = a.asset_id and i.closed_at is not null);
comment on view market.alpaca_listed_assets is
    'Assets without those that have left the list: missed by so many complete lists in a row, none of them suspiciously small';

create view market.alpaca_daily_bars_judged as
    select b.*,
           exists (select 1 from collect.fetches f
                    where f.stream = 'alpaca.bars_1d' and f.unit = b.unit and f.applied_at is not null
                      and f.sent_at >= (b.session_date + time '20:15') at time zone 'America/New_York') as is_final
      from market.alpaca_daily_bars b;
comment on view market.alpaca_daily_bars_judged is
    'Daily bars, and whether they were asked for again after the extended session: until then they are provisional';

create view market.alpaca_pending_symbols as
    select p.stream, coalesce(s.symbol, split_part(p.key, '/', 1)) as symbol, split_part(p.key, '/', 2) as bars, p.session_date, p.why,
           p.attempts, p.last_error, p.next_try_at, p.given_up_at, p.key
      from collect.pending p
      left join lateral (select f.about from collect.fetches f
                          where f.stream = p.stream and f.request_key = p.key order by f.fetch_id desc limit 1) l on true
      left join lateral unnest(string_to_array(l.about ->> 'symbols', ',')) as s(symbol) on true
     where p.stream in ('alpaca.bars_1d', 'alpaca.bars_1m') and p.why <> 'recheck';
comment on view market.alpaca_pending_symbols is
    'Symbols whose bars are still to be asked for, with tries, last error and next try; of a group that was never asked for the group alone';

create view market.alpaca_asked_none as
    select true as is_daily, n.session_date, n.symbol, n.timeframe, n.feed, n.adjustment, n.asof, n.sent_at from market.alpaca_daily_asked_none n
     where not exists (select 1 from market.alpaca_daily_bars b
                        where b.symbol = n.symbol and b.timeframe = n.timeframe and b.feed = n.feed and b.adjustment = n.adjustment
                          and b.session_date >= n.session_date and b.session_date < n.session_date + interval '1 month')
    union all
    select false, n.session_date, n.symbol, n.timeframe, n.feed, n.adjustment, n.asof, n.sent_at from market.alpaca_intraday_asked_none n
     where not exists (select 1 from market.alpaca_intraday_bars b
                        where b.symbol = n.symbol and b.timeframe = n.timeframe and b.feed = n.feed and b.adjustment = n.adjustment
                          and b.session_date = n.session_date);
comment on view market.alpaca_asked_none is
    'Symbols that were asked for and have no bar in a whole period, by its first day. A group notes whom it found without bars; where the number of groups has grown since, bars come with another group, and that note, which nobody takes back, is left out here';

create view market.alpaca_symbol_months as
    select b.symbol, b.timeframe, b.feed, b.adjustment, date_trunc('month', b.session_date)::date as month,
           count(*) as bars, min(b.session_date) as first_day, max(b.session_date) as last_day, max(b.sent_at) as newest_answer
      from market.alpaca_daily_bars b group by 1, 2, 3, 4, 5
    union all
    select n.symbol, n.timeframe, n.feed, n.adjustment, n.session_date, 0, null, null, n.sent_at from market.alpaca_asked_none n
     where n.is_daily;
comment on view market.alpaca_symbol_months is
    'How far each symbol is collected in bars of a day or longer, by month: how many there are, 0 where it was asked for and had none; no row where it was not asked for';
