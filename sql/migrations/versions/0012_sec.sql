-- 0012 sec: what is filed with the SEC, by whom, and who is listed where. Expand-only.
-- Roll-back note: the tables may be dropped once no release writes them and their parquet files are kept.

create table filings.sec_feed (
    accession       text not null,
    cik             bigint not null,
    role            text not null,
    company_name    text not null,
    form            text not null,
    filed_date      date not null,
    accepted_at     timestamptz(6) not null,
    accepted_text   text not null,
    size_text       text,
    items           text,
    folder_cik      bigint,
    seen_at         timestamptz(6) not null,
    seen_order      bigint not null,
    unit            text not null,
    fetch_id        bigint not null,
    sent_at         timestamptz(6) not null,
    parser_version  integer not null,
    cycle_id        bigint not null,
    attempt         integer not null,
    extra           jsonb,
    primary key (accession, cik, role)
);
comment on table filings.sec_feed is 'Filings as the SEC''s current feed first showed them, one row for each party in each role';
comment on column filings.sec_feed.accession is 'Number of the filing, with its dashes';
comment on column filings.sec_feed.cik is 'Company or person, by the SEC''s number';
comment on column filings.sec_feed.role is 'Filer, Reporting, Issuer, Subject, Filed by …; empty where the feed names none';
comment on column filings.sec_feed.company_name is 'Name of the party as shown';
comment on column filings.sec_feed.form is 'Form type as given, e.g. 10-K/A';
comment on column filings.sec_feed.filed_date is 'Official filing date; it may be before or after the day of acceptance';
comment on column filings.sec_feed.accepted_at is 'When EDGAR accepted it';
comment on column filings.sec_feed.accepted_text is 'The same as given, with its offset from UTC';
comment on column filings.sec_feed.size_text is 'Size in words, e.g. 14 KB';
comment on column filings.sec_feed.items is 'Items of a current report as shown, with ; between them';
comment on column filings.sec_feed.folder_cik is 'Company under whose folder the feed links the filing';
comment on column filings.sec_feed.seen_at is 'When the page was asked for that first showed it';
comment on column filings.sec_feed.seen_order is 'Minus the microseconds since 1970 of seen_at: what was seen first stays';
comment on column filings.sec_feed.unit is 'Unit that gave the row';
comment on column filings.sec_feed.fetch_id is 'Fetch that gave these values first';
comment on column filings.sec_feed.sent_at is 'When that fetch was sent';
comment on column filings.sec_feed.parser_version is 'Parser that read it';
comment on column filings.sec_feed.cycle_id is 'Cycle that wrote it';
comment on column filings.sec_feed.attempt is 'Claim of that cycle';
comment on column filings.sec_feed.extra is 'Columns of the upstream that nobody knew yet';
create index sec_feed_by_unit on filings.sec_feed (unit);

create table filings.sec_feed_history (
    like filings.sec_feed,
    ended_at   timestamptz(6) not null,
    reason     text not null check (reason in ('revised', 'withdrawn', 'parser')),
    primary key (accession, cik, role, sent_at, reason, parser_version)
);
comment on table filings.sec_feed_history is 'What sec_feed once said otherwise, until when and why no longer';
comment on column filings.sec_feed_history.accession is 'Number of the filing, with its dashes';
comment on column filings.sec_feed_history.cik is 'Company or person, by the SEC''s number';
comment on column filings.sec_feed_history.role is 'Filer, Reporting, Issuer, Subject, Filed by …; empty where the feed names none';
comment on column filings.sec_feed_history.company_name is 'Name of the party as shown';
comment on column filings.sec_feed_history.form is 'Form type as given, e.g. 10-K/A';
comment on column filings.sec_feed_history.filed_date is 'Official filing date; it may be before or after the day of acceptance';
comment on column filings.sec_feed_history.accepted_at is 'When EDGAR accepted it';
comment on column filings.sec_feed_history.accepted_text is 'The same as given, with its offset from UTC';
comment on column filings.sec_feed_history.size_text is 'Size in words, e.g. 14 KB';
comment on column filings.sec_feed_history.items is 'Items of a current report as shown, with ; between them';
comment on column filings.sec_feed_history.folder_cik is 'Company under whose folder the feed links the filing';
comment on column filings.sec_feed_history.seen_at is 'When the page was asked for that first showed it';
comment on column filings.sec_feed_history.seen_order is 'Minus the microseconds since 1970 of seen_at: what was seen first stays';
comment on column filings.sec_feed_history.unit is 'Unit that gave the row';
comment on column filings.sec_feed_history.fetch_id is 'Fetch that gave these values first';
comment on column filings.sec_feed_history.sent_at is 'When that fetch was sent';
comment on column filings.sec_feed_history.parser_version is 'Parser that read it';
comment on column filings.sec_feed_history.cycle_id is 'Cycle that wrote it';
comment on column filings.sec_feed_history.attempt is 'Claim of that cycle';
comment on column filings.sec_feed_history.extra is 'Columns of the upstream that nobody knew yet';
comment on column filings.sec_feed_history.ended_at is 'When the fetch was sent that says otherwise';
comment on column filings.sec_feed_history.reason is 'revised by a newer answer, withdrawn from it, or read otherwise by a newer parser';
create index sec_feed_history_by_unit on filings.sec_feed_history (unit);

create table filings.sec_feed_walks (
    started_at      timestamptz(6) not null,
    session_date    date not null,
    known_until     timestamptz(6) not null,
    newest_at       timestamptz(6),
    read_until      timestamptz(6),
    ended           text not null,
    is_whole        boolean not null,
    pages           integer not null,
    entries         integer not null,
    unit            text not null,
    fetch_id        bigint not null,
    sent_at         timestamptz(6) not null,
    parser_version  integer not null,
    cycle_id        bigint not null,
    attempt         integer not null,
    extra           jsonb,
    primary key (started_at)
);
comment on table filings.sec_feed_walks is 'Each reading of the current feed: from which instant down to which it read, and whether that left a hole';
comment on column filings.sec_feed_walks.started_at is 'When its first page was asked for';
comment on column filings.sec_feed_walks.session_date is 'Day in New York';
comment on column filings.sec_feed_walks.known_until is 'Down to where it had to read: what was accepted before was known';
comment on column filings.sec_feed_walks.newest_at is 'Newest acceptance that it showed, not after it began';
comment on column filings.sec_feed_walks.read_until is 'Down to where it read, by the last entries of its last page';
comment on column filings.sec_feed_walks.ended is 'known (it met what was known), end (of the feed) or cut (before either)';
comment on column filings.sec_feed_walks.is_whole is 'Whether it leaves no hole; false: the next one reads the same ground again';
comment on column filings.sec_feed_walks.pages is 'Pages read';
comment on column filings.sec_feed_walks.entries is 'Entries on them, those shown twice included';
comment on column filings.sec_feed_walks.unit is 'Unit that gave the row';
comment on column filings.sec_feed_walks.fetch_id is 'Fetch that gave these values first';
comment on column filings.sec_feed_walks.sent_at is 'When that fetch was sent';
comment on column filings.sec_feed_walks.parser_version is 'Parser that read it';
comment on column filings.sec_feed_walks.cycle_id is 'Cycle that wrote it';
comment on column filings.sec_feed_walks.attempt is 'Claim of that cycle';
comment on column filings.sec_feed_walks.extra is 'Columns of the upstream that nobody knew yet';
create index sec_feed_walks_by_unit on filings.sec_feed_walks (unit);

create table filings.sec_feed_walks_history (
    like filings.sec_feed_walks,
    ended_at   timestamptz(6) not null,
    reason     text not null check (reason in ('revised', 'withdrawn', 'parser')),
    primary key (started_at, sent_at, reason, parser_version)
);
comment on table filings.sec_feed_walks_history is 'What sec_feed_walks once said otherwise, until when and why no longer';
comment on column filings.sec_feed_walks_history.started_at is 'When its first page was asked for';
comment on column filings.sec_feed_walks_history.session_date is 'Day in New York';
comment on column filings.sec_feed_walks_history.known_until is 'Down to where it had to read: what was accepted before was known';
comment on column filings.sec_feed_walks_history.newest_at is 'Newest acceptance that it showed, not after it began';
comment on column filings.sec_feed_walks_history.read_until is 'Down to where it read, by the last entries of its last page';
comment on column filings.sec_feed_walks_history.ended is 'known (it met what was known), end (of the feed) or cut (before either)';
comment on column filings.sec_feed_walks_history.is_whole is 'Whether it leaves no hole; false: the next one reads the same ground again';
comment on column filings.sec_feed_walks_history.pages is 'Pages read';
comment on column filings.sec_feed_walks_history.entries is 'Entries on them, those shown twice included';
comment on column filings.sec_feed_walks_history.unit is 'Unit that gave the row';
comment on column filings.sec_feed_walks_history.fetch_id is 'Fetch that gave these values first';
comment on column filings.sec_feed_walks_history.sent_at is 'When that fetch was sent';
comment on column filings.sec_feed_walks_history.parser_version is 'Parser that read it';
comment on column filings.sec_feed_walks_history.cycle_id is 'Cycle that wrote it';
comment on column filings.sec_feed_walks_history.attempt is 'Claim of that cycle';
comment on column filings.sec_feed_walks_history.extra is 'Columns of the upstream that nobody knew yet';
comment on column filings.sec_feed_walks_history.ended_at is 'When the fetch was sent that says otherwise';
comment on column filings.sec_feed_walks_history.reason is 'revised by a newer answer, withdrawn from it, or read otherwise by a newer parser';
create index sec_feed_walks_history_by_unit on filings.sec_feed_walks_history (unit);

create table filings.sec_daily_index (
    index_date      date not null,
    accession       text not null,
    cik             bigint not null,
    form            text not null,
    company_name    text not null,
    filed_date      date not null,
    path            text not null,
    unit            text not null,
    fetch_id        bigint not null,
    sent_at         timestamptz(6) not null,
    parser_version  integer not null,
    cycle_id        bigint not null,
    attempt         integer not null,
    extra           jsonb,
    primary key (index_date, accession, cik, form)
);
comment on table filings.sec_daily_index is 'Rows of the SEC''s daily indexes: what was disseminated on a day, one row for each party and form';
comment on column filings.sec_daily_index.index_date is 'Day of the index';
comment on column filings.sec_daily_index.accession is 'Number of the filing, with its dashes';
comment on column filings.sec_daily_index.cik is 'Company or person, by the SEC''s number';
comment on column filings.sec_daily_index.form is 'Form type as given, e.g. 10-K/A';
comment on column filings.sec_daily_index.company_name is 'Name of the party as listed';
comment on column filings.sec_daily_index.filed_date is 'Official filing date; it may be before or after the day of acceptance';
comment on column filings.sec_daily_index.path is 'Path of the complete submission, below /Archives/';
comment on column filings.sec_daily_index.unit is 'Unit that gave the row';
comment on column filings.sec_daily_index.fetch_id is 'Fetch that gave these values first';
comment on column filings.sec_daily_index.sent_at is 'When that fetch was sent';
comment on column filings.sec_daily_index.parser_version is 'Parser that read it';
comment on column filings.sec_daily_index.cycle_id is 'Cycle that wrote it';
comment on column filings.sec_daily_index.attempt is 'Claim of that cycle';
comment on column filings.sec_daily_index.extra is 'Columns of the upstream that nobody knew yet';
create index sec_daily_index_by_unit on filings.sec_daily_index (unit);

create table filings.sec_daily_index_history (
    like filings.sec_daily_index,
    ended_at   timestamptz(6) not null,
    reason     text not null check (reason in ('revised', 'withdrawn', 'parser')),
    primary key (index_date, accession, cik, form, sent_at, reason, parser_version)
);
comment on table filings.sec_daily_index_history is 'What sec_daily_index once said otherwise, until when and why no longer';
comment on column filings.sec_daily_index_history.index_date is 'Day of the index';
comment on column filings.sec_daily_index_history.accession is 'Number of the filing, with its dashes';
comment on column filings.sec_daily_index_history.cik is 'Company or person, by the SEC''s number';
comment on column filings.sec_daily_index_history.form is 'Form type as given, e.g. 10-K/A';
comment on column filings.sec_daily_index_history.company_name is 'Name of the party as listed';
comment on column filings.sec_daily_index_history.filed_date is 'Official filing date; it may be before or after the day of acceptance';
comment on column filings.sec_daily_index_history.path is 'Path of the complete submission, below /Archives/';
comment on column filings.sec_daily_index_history.unit is 'Unit that gave the row';
comment on column filings.sec_daily_index_history.fetch_id is 'Fetch that gave these values first';
comment on column filings.sec_daily_index_history.sent_at is 'When that fetch was sent';
comment on column filings.sec_daily_index_history.parser_version is 'Parser that read it';
comment on column filings.sec_daily_index_history.cycle_id is 'Cycle that wrote it';
comment on column filings.sec_daily_index_history.attempt is 'Claim of that cycle';
comment on column filings.sec_daily_index_history.extra is 'Columns of the upstream that nobody knew yet';
comment on column filings.sec_daily_index_history.ended_at is 'When the fetch was sent that says otherwise';
comment on column filings.sec_daily_index_history.reason is 'revised by a newer answer, withdrawn from it, or read otherwise by a newer parser';
create index sec_daily_index_history_by_unit on filings.sec_daily_index_history (unit);

create table filings.sec_full_index (
    quarter         text not null,
    accession       text not null,
    cik             bigint not null,
    form            text not null,
    company_name    text not null,
    filed_date      date not null,
    path            text not null,
    unit            text not null,
    fetch_id        bigint not null,
    sent_at         timestamptz(6) not null,
    parser_version  integer not null,
    cycle_id        bigint not null,
    attempt         integer not null,
    extra           jsonb,
    primary key (quarter, accession, cik, form)
);
comment on table filings.sec_full_index is 'Rows of the SEC''s quarterly indexes, which it rebuilds every week; rows that vanished are in the history';
comment on column filings.sec_full_index.quarter is 'Quarter of the index, e.g. 2026Q3';
comment on column filings.sec_full_index.accession is 'Number of the filing, with its dashes';
comment on column filings.sec_full_index.cik is 'Company or person, by the SEC''s number';
comment on column filings.sec_full_index.form is 'Form type as given, e.g. 10-K/A';
comment on column filings.sec_full_index.company_name is 'Name of the party as listed';
comment on column filings.sec_full_index.filed_date is 'Official filing date; it may be before or after the day of acceptance';
comment on column filings.sec_full_index.path is 'Path of the complete submission, below /Archives/';
comment on column filings.sec_full_index.unit is 'Unit that gave the row';
comment on column filings.sec_full_index.fetch_id is 'Fetch that gave these values first';
comment on column filings.sec_full_index.sent_at is 'When that fetch was sent';
comment on column filings.sec_full_index.parser_version is 'Parser that read it';
comment on column filings.sec_full_index.cycle_id is 'Cycle that wrote it';
comment on column filings.sec_full_index.attempt is 'Claim of that cycle';
comment on column filings.sec_full_index.extra is 'Columns of the upstream that nobody knew yet';
create index sec_full_index_by_unit on filings.sec_full_index (unit, sent_at);

create table filings.sec_full_index_history (
    like filings.sec_full_index,
    ended_at   timestamptz(6) not null,
    reason     text not null check (reason in ('revised', 'withdrawn', 'parser')),
    primary key (quarter, accession, cik, form, sent_at, reason, parser_version)
);
comment on table filings.sec_full_index_history is 'What sec_full_index once said otherwise, until when and why no longer';
comment on column filings.sec_full_index_history.quarter is 'Quarter of the index, e.g. 2026Q3';
comment on column filings.sec_full_index_history.accession is 'Number of the filing, with its dashes';
comment on column filings.sec_full_index_history.cik is 'Company or person, by the SEC''s number';
comment on column filings.sec_full_index_history.form is 'Form type as given, e.g. 10-K/A';
comment on column filings.sec_full_index_history.company_name is 'Name of the party as listed';
comment on column filings.sec_full_index_history.filed_date is 'Official filing date; it may be before or after the day of acceptance';
comment on column filings.sec_full_index_history.path is 'Path of the complete submission, below /Archives/';
comment on column filings.sec_full_index_history.unit is 'Unit that gave the row';
comment on column filings.sec_full_index_history.fetch_id is 'Fetch that gave these values first';
comment on column filings.sec_full_index_history.sent_at is 'When that fetch was sent';
comment on column filings.sec_full_index_history.parser_version is 'Parser that read it';
comment on column filings.sec_full_index_history.cycle_id is 'Cycle that wrote it';
comment on column filings.sec_full_index_history.attempt is 'Claim of that cycle';
comment on column filings.sec_full_index_history.extra is 'Columns of the upstream that nobody knew yet';
comment on column filings.sec_full_index_history.ended_at is 'When the fetch was sent that says otherwise';
comment on column filings.sec_full_index_history.reason is 'revised by a newer answer, withdrawn from it, or read otherwise by a newer parser';
create index sec_full_index_history_by_unit on filings.sec_full_index_history (unit);

create table filings.sec_companies (
    cik                     bigint not null,
    name                    text not null,
    entity_type             text,
    sic                     text,
    sic_description         text,
    tickers                 jsonb not null,
    exchanges               jsonb not null,
    ein                     text,
    lei                     text,
    category                text,
    fiscal_year_end         text,
    state_of_incorporation  text,
    addresses               jsonb,
    former_names            jsonb,
    unit                    text not null,
    fetch_id                bigint not null,
    sent_at                 timestamptz(6) not null,
    parser_version          integer not null,
    cycle_id                bigint not null,
    attempt                 integer not null,
    extra                   jsonb,
    primary key (cik)
);
comment on table filings.sec_companies is 'Followed companies as their lists of filings describe them';
comment on column filings.sec_companies.cik is 'Company or person, by the SEC''s number';
comment on column filings.sec_companies.name is 'Conformed name';
comment on column filings.sec_companies.entity_type is 'operating, other …';
comment on column filings.sec_companies.sic is 'Industry code; empty for people and funds';
comment on column filings.sec_companies.sic_description is 'Industry in words';
comment on column filings.sec_companies.tickers is 'Tickers, as given';
comment on column filings.sec_companies.exchanges is 'Exchange of each ticker, as given';
comment on column filings.sec_companies.ein is 'Employer''s number; 000000000 where unknown';
comment on column filings.sec_companies.lei is 'Legal entity identifier';
comment on column filings.sec_companies.category is 'Filer category, with the line breaks of the page that it is from';
comment on column filings.sec_companies.fiscal_year_end is 'Month and day, MMDD';
comment on column filings.sec_companies.state_of_incorporation is 'EDGAR''s code of state or country';
comment on column filings.sec_companies.addresses is 'Business and mailing address, as given';
comment on column filings.sec_companies.former_names is 'Former names with their days, as given';
comment on column filings.sec_companies.unit is 'Unit that gave the row';
comment on column filings.sec_companies.fetch_id is 'Fetch that gave these values first';
comment on column filings.sec_companies.sent_at is 'When that fetch was sent';
comment on column filings.sec_companies.parser_version is 'Parser that read it';
comment on column filings.sec_companies.cycle_id is 'Cycle that wrote it';
comment on column filings.sec_companies.attempt is 'Claim of that cycle';
comment on column filings.sec_companies.extra is 'Columns of the upstream that nobody knew yet';
create index sec_companies_by_unit on filings.sec_companies (unit);

create table filings.sec_companies_history (
    like filings.sec_companies,
    ended_at   timestamptz(6) not null,
    reason     text not null check (reason in ('revised', 'withdrawn', 'parser')),
    primary key (cik, sent_at, reason, parser_version)
);
comment on table filings.sec_companies_history is 'What sec_companies once said otherwise, until when and why no longer';
comment on column filings.sec_companies_history.cik is 'Company or person, by the SEC''s number';
comment on column filings.sec_companies_history.name is 'Conformed name';
comment on column filings.sec_companies_history.entity_type is 'operating, other …';
comment on column filings.sec_companies_history.sic is 'Industry code; empty for people and funds';
comment on column filings.sec_companies_history.sic_description is 'Industry in words';
comment on column filings.sec_companies_history.tickers is 'Tickers, as given';
comment on column filings.sec_companies_history.exchanges is 'Exchange of each ticker, as given';
comment on column filings.sec_companies_history.ein is 'Employer''s number; 000000000 where unknown';
comment on column filings.sec_companies_history.lei is 'Legal entity identifier';
comment on column filings.sec_companies_history.category is 'Filer category, with the line breaks of the page that it is from';
comment on column filings.sec_companies_history.fiscal_year_end is 'Month and day, MMDD';
comment on column filings.sec_companies_history.state_of_incorporation is 'EDGAR''s code of state or country';
comment on column filings.sec_companies_history.addresses is 'Business and mailing address, as given';
comment on column filings.sec_companies_history.former_names is 'Former names with their days, as given';
comment on column filings.sec_companies_history.unit is 'Unit that gave the row';
comment on column filings.sec_companies_history.fetch_id is 'Fetch that gave these values first';
comment on column filings.sec_companies_history.sent_at is 'When that fetch was sent';
comment on column filings.sec_companies_history.parser_version is 'Parser that read it';
comment on column filings.sec_companies_history.cycle_id is 'Cycle that wrote it';
comment on column filings.sec_companies_history.attempt is 'Claim of that cycle';
comment on column filings.sec_companies_history.extra is 'Columns of the upstream that nobody knew yet';
comment on column filings.sec_companies_history.ended_at is 'When the fetch was sent that says otherwise';
comment on column filings.sec_companies_history.reason is 'revised by a newer answer, withdrawn from it, or read otherwise by a newer parser';
create index sec_companies_history_by_unit on filings.sec_companies_history (unit);

create table filings.sec_company_filings (
    cik                  bigint not null,
    accession            text not null,
    form                 text not null,
    filed_date           date not null,
    report_date          date,
    accepted_text        text,
    accepted_if_utc      timestamptz(6),
    accepted_if_local    timestamptz(6),
    act                  text,
    file_number          text,
    film_number          text,
    items                text,
    core_type            text,
    size                 bigint,
    is_xbrl              boolean,
    is_inline_xbrl       boolean,
    primary_document     text,
    primary_description  text,
    unit                 text not null,
    fetch_id             bigint not null,
    sent_at              timestamptz(6) not null,
    parser_version       integer not null,
    cycle_id             bigint not null,
    attempt              integer not null,
    extra                jsonb,
    primary key (cik, accession)
);
comment on table filings.sec_company_filings is 'Filings of followed companies as their own lists show them';
comment on column filings.sec_company_filings.cik is 'Company or person, by the SEC''s number';
comment on column filings.sec_company_filings.accession is 'Number of the filing, with its dashes';
comment on column filings.sec_company_filings.form is 'Form type as given, e.g. 10-K/A';
comment on column filings.sec_company_filings.filed_date is 'Official filing date; it may be before or after the day of acceptance';
comment on column filings.sec_company_filings.report_date is 'Period that it reports on';
comment on column filings.sec_company_filings.accepted_text is 'Acceptance as given; its Z is false for some filers';
comment on column filings.sec_company_filings.accepted_if_utc is 'The acceptance if the Z is true';
comment on column filings.sec_company_filings.accepted_if_local is 'The acceptance if it is New York''s clock';
comment on column filings.sec_company_filings.act is 'Act under which it was filed';
comment on column filings.sec_company_filings.file_number is 'SEC file number';
comment on column filings.sec_company_filings.film_number is 'Film number';
comment on column filings.sec_company_filings.items is 'Items of a current report, with commas';
comment on column filings.sec_company_filings.core_type is 'Core document type; not the form';
comment on column filings.sec_company_filings.size is 'Size of the submission in bytes';
comment on column filings.sec_company_filings.is_xbrl is 'It has XBRL';
comment on column filings.sec_company_filings.is_inline_xbrl is 'Its XBRL is inline';
comment on column filings.sec_company_filings.primary_document is 'Path of the main document, rendered where it begins with xsl';
comment on column filings.sec_company_filings.primary_description is 'What the main document is';
comment on column filings.sec_company_filings.unit is 'Unit that gave the row';
comment on column filings.sec_company_filings.fetch_id is 'Fetch that gave these values first';
comment on column filings.sec_company_filings.sent_at is 'When that fetch was sent';
comment on column filings.sec_company_filings.parser_version is 'Parser that read it';
comment on column filings.sec_company_filings.cycle_id is 'Cycle that wrote it';
comment on column filings.sec_company_filings.attempt is 'Claim of that cycle';
comment on column filings.sec_company_filings.extra is 'Columns of the upstream that nobody knew yet';
create index sec_company_filings_by_unit on filings.sec_company_filings (unit);

create table filings.sec_company_filings_history (
    like filings.sec_company_filings,
    ended_at   timestamptz(6) not null,
    reason     text not null check (reason in ('revised', 'withdrawn', 'parser')),
    primary key (cik, accession, sent_at, reason, parser_version)
);
comment on table filings.sec_company_filings_history is 'What sec_company_filings once said otherwise, until when and why no longer';
comment on column filings.sec_company_filings_history.cik is 'Company or person, by the SEC''s number';
comment on column filings.sec_company_filings_history.accession is 'Number of the filing, with its dashes';
comment on column filings.sec_company_filings_history.form is 'Form type as given, e.g. 10-K/A';
comment on column filings.sec_company_filings_history.filed_date is 'Official filing date; it may be before or after the day of acceptance';
comment on column filings.sec_company_filings_history.report_date is 'Period that it reports on';
comment on column filings.sec_company_filings_history.accepted_text is 'Acceptance as given; its Z is false for some filers';
comment on column filings.sec_company_filings_history.accepted_if_utc is 'The acceptance if the Z is true';
comment on column filings.sec_company_filings_history.accepted_if_local is 'The acceptance if it is New York''s clock';
comment on column filings.sec_company_filings_history.act is 'Act under which it was filed';
comment on column filings.sec_company_filings_history.file_number is 'SEC file number';
comment on column filings.sec_company_filings_history.film_number is 'Film number';
comment on column filings.sec_company_filings_history.items is 'Items of a current report, with commas';
comment on column filings.sec_company_filings_history.core_type is 'Core document type; not the form';
comment on column filings.sec_company_filings_history.size is 'Size of the submission in bytes';
comment on column filings.sec_company_filings_history.is_xbrl is 'It has XBRL';
comment on column filings.sec_company_filings_history.is_inline_xbrl is 'Its XBRL is inline';
comment on column filings.sec_company_filings_history.primary_document is 'Path of the main document, rendered where it begins with xsl';
comment on column filings.sec_company_filings_history.primary_description is 'What the main document is';
comment on column filings.sec_company_filings_history.unit is 'Unit that gave the row';
comment on column filings.sec_company_filings_history.fetch_id is 'Fetch that gave these values first';
comment on column filings.sec_company_filings_history.sent_at is 'When that fetch was sent';
comment on column filings.sec_company_filings_history.parser_version is 'Parser that read it';
comment on column filings.sec_company_filings_history.cycle_id is 'Cycle that wrote it';
comment on column filings.sec_company_filings_history.attempt is 'Claim of that cycle';
comment on column filings.sec_company_filings_history.extra is 'Columns of the upstream that nobody knew yet';
comment on column filings.sec_company_filings_history.ended_at is 'When the fetch was sent that says otherwise';
comment on column filings.sec_company_filings_history.reason is 'revised by a newer answer, withdrawn from it, or read otherwise by a newer parser';
create index sec_company_filings_history_by_unit on filings.sec_company_filings_history (unit);

create table filings.sec_tickers (
    ticker          text not null,
    cik             bigint not null,
    exchange        text,
    company_name    text not null,
    is_nasdaq       boolean not null,
    is_nyse         boolean not null,
    unit            text not null,
    fetch_id        bigint not null,
    sent_at         timestamptz(6) not null,
    parser_version  integer not null,
    cycle_id        bigint not null,
    attempt         integer not null,
    extra           jsonb,
    primary key (ticker, cik)
);
comment on table filings.sec_tickers is 'Tickers of companies and where they are listed today; the history tells until when another one had them';
comment on column filings.sec_tickers.ticker is 'Ticker as the SEC spells it, e.g. BRK-B';
comment on column filings.sec_tickers.cik is 'Company or person, by the SEC''s number';
comment on column filings.sec_tickers.exchange is 'Nasdaq, NYSE, OTC, CBOE; null where the SEC names none';
comment on column filings.sec_tickers.company_name is 'Name of the company';
comment on column filings.sec_tickers.is_nasdaq is 'Listed on Nasdaq';
comment on column filings.sec_tickers.is_nyse is 'Listed on NYSE';
comment on column filings.sec_tickers.unit is 'Unit that gave the row';
comment on column filings.sec_tickers.fetch_id is 'Fetch that gave these values first';
comment on column filings.sec_tickers.sent_at is 'When that fetch was sent';
comment on column filings.sec_tickers.parser_version is 'Parser that read it';
comment on column filings.sec_tickers.cycle_id is 'Cycle that wrote it';
comment on column filings.sec_tickers.attempt is 'Claim of that cycle';
comment on column filings.sec_tickers.extra is 'Columns of the upstream that nobody knew yet';
create index sec_tickers_by_unit on filings.sec_tickers (unit);

create table filings.sec_tickers_history (
    like filings.sec_tickers,
    ended_at   timestamptz(6) not null,
    reason     text not null check (reason in ('revised', 'withdrawn', 'parser')),
    primary key (ticker, cik, sent_at, reason, parser_version)
);
comment on table filings.sec_tickers_history is 'What sec_tickers once said otherwise, until when and why no longer';
comment on column filings.sec_tickers_history.ticker is 'Ticker as the SEC spells it, e.g. BRK-B';
comment on column filings.sec_tickers_history.cik is 'Company or person, by the SEC''s number';
comment on column filings.sec_tickers_history.exchange is 'Nasdaq, NYSE, OTC, CBOE; null where the SEC names none';
comment on column filings.sec_tickers_history.company_name is 'Name of the company';
comment on column filings.sec_tickers_history.is_nasdaq is 'Listed on Nasdaq';
comment on column filings.sec_tickers_history.is_nyse is 'Listed on NYSE';
comment on column filings.sec_tickers_history.unit is 'Unit that gave the row';
comment on column filings.sec_tickers_history.fetch_id is 'Fetch that gave these values first';
comment on column filings.sec_tickers_history.sent_at is 'When that fetch was sent';
comment on column filings.sec_tickers_history.parser_version is 'Parser that read it';
comment on column filings.sec_tickers_history.cycle_id is 'Cycle that wrote it';
comment on column filings.sec_tickers_history.attempt is 'Claim of that cycle';
comment on column filings.sec_tickers_history.extra is 'Columns of the upstream that nobody knew yet';
comment on column filings.sec_tickers_history.ended_at is 'When the fetch was sent that says otherwise';
comment on column filings.sec_tickers_history.reason is 'revised by a newer answer, withdrawn from it, or read otherwise by a newer parser';
create index sec_tickers_history_by_unit on filings.sec_tickers_history (unit);

create index sec_feed_by_seen on filings.sec_feed (seen_at);
create index sec_feed_walks_whole on filings.sec_feed_walks (newest_at) where is_whole;
create index sec_daily_index_by_accession on filings.sec_daily_index (accession);
create index sec_daily_index_by_sent on filings.sec_daily_index (sent_at);
create index sec_full_index_by_accession on filings.sec_full_index (accession);
create index sec_full_index_by_sent on filings.sec_full_index (sent_at);
create index sec_full_index_history_by_accession on filings.sec_full_index_history (accession);
create index sec_company_filings_by_accession on filings.sec_company_filings (accession);

create view filings.sec_parties as
    select f.accession, f.cik, f.role, f.company_name, f.form, f.filed_date, f.accepted_at, f.seen_at, 'feed'::text as found_in,
           f.accepted_at as accepted_at_latest
      from filings.sec_feed f
    union all
    select d.accession, d.cik, null, d.company_name, d.form, d.filed_date, null, d.sent_at, 'daily index', null
      from filings.sec_daily_index d
    union all
    select q.accession, q.cik, null, q.company_name, q.form, q.filed_date, null, q.sent_at, 'quarterly index', null
      from filings.sec_full_index q
    union all
    select c.accession, c.cik, null, null, c.form, c.filed_date, null, c.sent_at, 'company',
           greatest(c.accepted_if_utc, c.accepted_if_local)
      from filings.sec_company_filings c;
comment on view filings.sec_parties is
    'Every party, role and form under which a filing was shown, by where it was found; one filing has many rows';

create view filings.sec_accessions as
    select p.accession, min(p.form) as form, array_agg(distinct p.form order by p.form) as forms,
           array_agg(distinct p.cik order by p.cik) as ciks, min(p.filed_date) as filed_date,
           min(p.accepted_at) as accepted_at, coalesce(min(p.accepted_at), min(p.accepted_at_latest)) as accepted_at_latest,
           min(p.seen_at) as discovered_at,
           array_agg(distinct p.found_in order by p.found_in) as found_in,
           exists (select 1 from filings.sec_full_index_history h where h.accession = p.accession and h.reason = 'withdrawn')
               and not exists (select 1 from filings.sec_full_index q where q.accession = p.accession) as is_withdrawn
      from filings.sec_parties p
     group by p.accession;
comment on view filings.sec_accessions is
    'One row for each filing, however it was found: its forms, parties, acceptance (from the feed; the latest that it '
    'may have been where only a company''s own list knows) and first sighting; withdrawn '
    'where the quarterly index listed it and no longer does';

create function filings.sec_form_family(form text) returns text language sql immutable as $$
    select case regexp_replace(form, '/A$', '')
               when 'SC 13D' then '13D' when 'SCHEDULE 13D' then '13D'
               when 'SC 13G' then '13G' when 'SCHEDULE 13G' then '13G'
               when '10-KT' then '10-K' when '10-K405' then '10-K' when '10-KSB' then '10-K' when '10-KSB40' then '10-K'
               when '10-KT405' then '10-K'
               when '10-QT' then '10-Q' when '10-QSB' then '10-Q'
               else regexp_replace(form, '/A$', '') end
$$;
comment on function filings.sec_form_family(text) is
    'The family of a form: forms that were renamed, as SC 13D to SCHEDULE 13D in December 2024, stay together, amendments with them';

create view filings.sec_form_families as
    select f.form, filings.sec_form_family(f.form) as family, f.form like '%/A' as is_amendment
      from (select distinct form from filings.sec_parties) f;
comment on view filings.sec_form_families is 'The family of each form that was seen';

create view filings.sec_silent_families as
    select b.family, b.filings, b.last_day, d.newest_day
      from (select filings.sec_form_family(i.form) as family, sum(i.filings)::bigint as filings, max(i.last_day) as last_day
              from (select n.form, count(distinct n.accession) as filings, max(n.index_date) as last_day
                      from filings.sec_daily_index n
                     where n.index_date > (select max(index_date) - 60 from filings.sec_daily_index)
                     group by n.form) i
             group by 1) b
     cross join (select max(index_date) as newest_day, min(index_date) as since
                   from (select distinct n.index_date from filings.sec_daily_index n
                          where n.index_date > (select max(index_date) - 60 from filings.sec_daily_index)
                          order by 1 desc limit 5) n) d
     where b.filings >= 60 and b.last_day < d.since;
comment on view filings.sec_silent_families is
    'Families of forms that were filed at least once a day on average over sixty days and not once in the last five indexes: a form '
    'that was renamed, as SC 13G in December 2024, shows up here';

create view filings.sec_doubts as
    select 'sec.index' as stream, s.family as key,
           'forms of the family ' || s.family || ' were filed last on ' || s.last_day || ', ' || s.filings || ' times in the sixty days to '
           || s.newest_day || ', and not at all since: the SEC may call them otherwise' as says
      from filings.sec_silent_families s;
comment on view filings.sec_doubts is 'What an operator should look at though every answer was fine: families of forms that fell to zero';

create view filings.sec_feed_mark as
    select 'known/' || to_char(max(w.newest_at) at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"+00:00"') as subject, true as is_known
      from filings.sec_feed_walks w
     where w.is_whole and w.newest_at is not null
    having max(w.newest_at) is not null;
comment on view filings.sec_feed_mark is 'Down to where the current feed is known: the newest acceptance that a reading without a hole showed';

create view filings.sec_universe as
    select t.cik::text as subject, bool_or(t.is_nasdaq) as is_nasdaq, bool_or(t.is_nyse) as is_nyse
      from filings.sec_tickers t
     group by t.cik;
comment on view filings.sec_universe is 'Companies with a ticker, and on which exchange one of their tickers is listed';

create view filings.sec_ticker_validity as
    select v.ticker, v.cik, v.exchange, v.company_name, v.sent_at as valid_from, v.ended_at as valid_to
      from (select ticker, cik, exchange, company_name, sent_at, null::timestamptz as ended_at from filings.sec_tickers
            union all
            select ticker, cik, exchange, company_name, sent_at, ended_at from filings.sec_tickers_history where reason <> 'parser') v;
comment on view filings.sec_ticker_validity is
    'Which company had a ticker from when until when, as collected: the SEC publishes no past; null: it still has it';

create function filings.sec_tickers_as_of(at timestamptz)
    returns table (ticker text, cik bigint, exchange text, company_name text)
    language sql stable as $$
    select v.ticker, v.cik, v.exchange, v.company_name from filings.sec_ticker_validity v
     where v.valid_from <= sec_tickers_as_of.at and (v.valid_to is null or v.valid_to > sec_tickers_as_of.at)
$$;
comment on function filings.sec_tickers_as_of(timestamptz) is 'Who had which ticker at an instant, as it had been collected by then';

create view filings.sec_wanted as
    select s.accession, s.cik, s.form, s.accession || '/' || s.cik || '/' || s.filed_date as subject, s.filed_date, true as is_all,
           coalesce(u.is_nasdaq, false) as is_nasdaq, coalesce(u.is_nyse, false) as is_nyse
      from (select f.accession, f.cik, f.form, f.filed_date from filings.sec_feed f
             where f.seen_at >= (select collect.clock() - interval '10 days')
            union
            select d.accession, d.cik, d.form, d.filed_date from filings.sec_daily_index d
             where d.sent_at >= (select collect.clock() - interval '10 days')
               and d.index_date >= (select (collect.clock() - interval '20 days')::date)
            union
            select q.accession, q.cik, q.form, q.filed_date from filings.sec_full_index q
             where q.sent_at >= (select collect.clock() - interval '10 days')
               and q.filed_date >= (select (collect.clock() - interval '100 days')::date)
               and q.sent_at > (select min(o.sent_at) from filings.sec_full_index o where o.unit = q.unit)) s
      left join filings.sec_universe u on u.subject = s.cik::text;
comment on view filings.sec_wanted is
    'Filings that were found in the last ten days, one row for each party and form, and the exchanges that the party is listed on: what the '
    'streams of documents choose from. Of a quarterly index only what a later version of it added; older ground is for backfills';
