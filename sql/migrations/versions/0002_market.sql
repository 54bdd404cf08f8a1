-- 0002 market: FINRA's daily short sale volume. Expand-only.
-- Roll-back note: the tables may be dropped once no release writes them and their parquet files are kept.

create table market.finra_short_volume (
    session_date         date not null,
    facility             text not null,
    symbol               text not null,
    short_volume         numeric(20, 6) not null,
    short_exempt_volume  numeric(20, 6),
    total_volume         numeric(20, 6) not null,
    market               text not null,
    unit                 text not null,
    fetch_id             bigint not null,
    sent_at              timestamptz(6) not null,
    parser_version       integer not null,
    cycle_id             bigint not null,
    attempt              integer not null,
    extra                jsonb,
    primary key (session_date, facility, symbol)
);
comment on table market.finra_short_volume is 'Short sale volume reported off exchange, by trade date, facility file and symbol (FINRA)';
comment on column market.finra_short_volume.session_date is 'Trade date, New York';
comment on column market.finra_short_volume.facility is 'File that says so: CNMS (consolidated NMS) or one facility; CNMS is the sum of FNSQ, FNQC, FNYX and FNRA';
comment on column market.finra_short_volume.symbol is 'Symbol as FINRA spells it; case is significant';
comment on column market.finra_short_volume.short_volume is 'Shares sold short, short exempt included';
comment on column market.finra_short_volume.short_exempt_volume is 'Of these, short exempt; null before 2011-02-28, when the file had no such column';
comment on column market.finra_short_volume.total_volume is 'Shares traded, short and long, as reported to the facility';
comment on column market.finra_short_volume.market is 'Facility codes as given, e.g. B,Q,N';
comment on column market.finra_short_volume.unit is 'Unit that gave the row';
comment on column market.finra_short_volume.fetch_id is 'Fetch that gave these values first';
comment on column market.finra_short_volume.sent_at is 'When that fetch was sent';
comment on column market.finra_short_volume.parser_version is 'Parser that read it';
comment on column market.finra_short_volume.cycle_id is 'Cycle that wrote it';
comment on column market.finra_short_volume.attempt is 'Claim of that cycle';
comment on column market.finra_short_volume.extra is 'Columns of the upstream that nobody knew yet';
create index finra_short_volume_by_symbol on market.finra_short_volume (symbol, session_date);
create index finra_short_volume_by_unit on market.finra_short_volume (unit);

create table market.finra_short_volume_history (
    like market.finra_short_volume,
    ended_at   timestamptz(6) not null,
    reason     text not null check (reason in ('revised', 'withdrawn', 'parser')),
    primary key (session_date, facility, symbol, sent_at, reason, parser_version)
);
comment on table market.finra_short_volume_history is 'Values of finra_short_volume that were once right, until when and why no longer';
comment on column market.finra_short_volume_history.session_date is 'Trade date, New York';
comment on column market.finra_short_volume_history.facility is 'File that said so';
comment on column market.finra_short_volume_history.symbol is 'Symbol as FINRA spells it; case is significant';
comment on column market.finra_short_volume_history.short_volume is 'Shares sold short, short exempt included';
comment on column market.finra_short_volume_history.short_exempt_volume is 'Of these, short exempt; null before 2011-02-28';
comment on column market.finra_short_volume_history.total_volume is 'Shares traded, short and long';
comment on column market.finra_short_volume_history.market is 'Facility codes as given';
comment on column market.finra_short_volume_history.unit is 'Unit that gave the row';
comment on column market.finra_short_volume_history.fetch_id is 'Fetch that gave these values first';
comment on column market.finra_short_volume_history.sent_at is 'When that fetch was sent';
comment on column market.finra_short_volume_history.parser_version is 'Parser that read it';
comment on column market.finra_short_volume_history.cycle_id is 'Cycle that wrote it';
comment on column market.finra_short_volume_history.attempt is 'Claim of that cycle';
comment on column market.finra_short_volume_history.extra is 'Columns of the upstream that nobody knew yet';
comment on column market.finra_short_volume_history.ended_at is 'When the fetch was sent that says otherwise';
comment on column market.finra_short_volume_history.reason is 'revised by a newer answer, withdrawn from it, or read otherwise by a newer parser';
create index finra_short_volume_history_by_unit on market.finra_short_volume_history (unit);

create view market.finra_short_volume_consolidated as
    select session_date, symbol, short_volume, short_exempt_volume, total_volume, market, false as derived
      from market.finra_short_volume
     where facility = 'CNMS'
    union all
    select session_date, symbol, sum(short_volume), sum(short_exempt_volume), sum(total_volume),
           string_agg(market, ',' order by market), true
      from market.finra_short_volume
     where facility in ('FNSQ', 'FNQC', 'FNYX', 'FNRA') and session_date < date '2018-08-01'
     group by session_date, symbol;
comment on view market.finra_short_volume_consolidated is 'One row per day and symbol: the consolidated file, before 2018-08-01 the sum of the facilities (derived)';
