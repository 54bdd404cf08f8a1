-- 0013 sec_filings: submissions as read, their documents, headers and XBRL, and what is still to be read. Expand-only.
-- Roll-back note: tables and views may be dropped once no stream of sec writes or asks them and what is wanted is exported.

create table filings.sec_texts (
    accession           text collate "C" not null,
    filed_date          date not null,
    released_date       date,
    is_pem              boolean not null,
    is_whole            boolean not null,
    size                bigint not null,
    declared_documents  integer,
    documents           integer not null,
    instances           integer not null,
    inline_document     text,
    unit                text not null,
    fetch_id            bigint not null,
    sent_at             timestamptz(6) not null,
    parser_version      integer not null,
    cycle_id            bigint not null,
    attempt             integer not null,
    extra               jsonb,
    primary key (accession)
);
comment on table filings.sec_texts is 'Complete submissions as they were read: how many documents they hold and what kind of XBRL';
comment on column filings.sec_texts.accession is 'Number of the filing, with its dashes';
comment on column filings.sec_texts.filed_date is 'Filing date as the header says, or the index where it has none';
comment on column filings.sec_texts.released_date is 'Day in its first line: when it was made public';
comment on column filings.sec_texts.is_pem is 'It came as privacy-enhanced mail, as until about 2005';
comment on column filings.sec_texts.is_whole is 'Its end was there; false: it was cut off, or its last document was';
comment on column filings.sec_texts.size is 'Bytes';
comment on column filings.sec_texts.declared_documents is 'Documents as the header counts them';
comment on column filings.sec_texts.documents is 'Documents that are there; the header often counts one or two more';
comment on column filings.sec_texts.instances is 'XBRL instances among them';
comment on column filings.sec_texts.inline_document is 'First document with inline XBRL, null where there is none';
comment on column filings.sec_texts.unit is 'Unit that gave the row';
comment on column filings.sec_texts.fetch_id is 'Fetch that gave these values first';
comment on column filings.sec_texts.sent_at is 'When that fetch was sent';
comment on column filings.sec_texts.parser_version is 'Parser that read it';
comment on column filings.sec_texts.cycle_id is 'Cycle that wrote it';
comment on column filings.sec_texts.attempt is 'Claim of that cycle';
comment on column filings.sec_texts.extra is 'Columns of the upstream that nobody knew yet';
create index sec_texts_by_unit on filings.sec_texts (unit);

create table filings.sec_texts_history (
    like filings.sec_texts,
    ended_at  timestamptz(6) not null,
    reason    text not null check (reason in ('revised', 'withdrawn', 'parser')),
    primary key (accession, sent_at, reason, parser_version)
);
comment on table filings.sec_texts_history is 'What sec_texts once said otherwise, until when and why no longer';
comment on column filings.sec_texts_history.accession is 'Number of the filing, with its dashes';
comment on column filings.sec_texts_history.filed_date is 'Filing date as the header says, or the index where it has none';
comment on column filings.sec_texts_history.released_date is 'Day in its first line: when it was made public';
comment on column filings.sec_texts_history.is_pem is 'It came as privacy-enhanced mail, as until about 2005';
comment on column filings.sec_texts_history.is_whole is 'Its end was there; false: it was cut off, or its last document was';
comment on column filings.sec_texts_history.size is 'Bytes';
comment on column filings.sec_texts_history.declared_documents is 'Documents as the header counts them';
comment on column filings.sec_texts_history.documents is 'Documents that are there; the header often counts one or two more';
comment on column filings.sec_texts_history.instances is 'XBRL instances among them';
comment on column filings.sec_texts_history.inline_document is 'First document with inline XBRL, null where there is none';
comment on column filings.sec_texts_history.unit is 'Unit that gave the row';
comment on column filings.sec_texts_history.fetch_id is 'Fetch that gave these values first';
comment on column filings.sec_texts_history.sent_at is 'When that fetch was sent';
comment on column filings.sec_texts_history.parser_version is 'Parser that read it';
comment on column filings.sec_texts_history.cycle_id is 'Cycle that wrote it';
comment on column filings.sec_texts_history.attempt is 'Claim of that cycle';
comment on column filings.sec_texts_history.extra is 'Columns of the upstream that nobody knew yet';
comment on column filings.sec_texts_history.ended_at is 'When the fetch was sent that says otherwise';
comment on column filings.sec_texts_history.reason is 'revised by a newer answer, withdrawn from it, or read otherwise by a newer parser';
create index sec_texts_history_by_unit on filings.sec_texts_history (unit);

create table filings.sec_documents (
    accession       text collate "C" not null,
    number          integer not null,
    filed_date      date not null,
    sequence        integer,
    type            text not null,
    filename        text,
    description     text,
    wrapper         text,
    charset         text not null,
    is_uuencoded    boolean not null,
    text_start      bigint not null,
    text_length     bigint not null,
    size            bigint not null,
    sha256          text not null,
    defect          text,
    unit            text not null,
    fetch_id        bigint not null,
    sent_at         timestamptz(6) not null,
    parser_version  integer not null,
    cycle_id        bigint not null,
    attempt         integer not null,
    extra           jsonb,
    primary key (accession, number)
);
comment on table filings.sec_documents is 'Documents of filings, with the place at which each stands in the stored text of its submission';
comment on column filings.sec_documents.accession is 'Number of the filing, with its dashes';
comment on column filings.sec_documents.number is 'Order in the submission, from 1; the first is the primary document';
comment on column filings.sec_documents.filed_date is 'Filing date as the header says, or the index where it has none';
comment on column filings.sec_documents.sequence is 'Number that the filer gave; with gaps and repeats';
comment on column filings.sec_documents.type is 'Type as given, e.g. 10-K, EX-99.1, GRAPHIC, XML';
comment on column filings.sec_documents.filename is 'Name of the file; missing in old filings, and it may repeat';
comment on column filings.sec_documents.description is 'Description as given';
comment on column filings.sec_documents.wrapper is 'What EDGAR wrapped around it: XBRL, XML, PDF, JSON';
comment on column filings.sec_documents.charset is 'utf-8, cp1252 or latin-1, whichever reads all of it first; binary';
comment on column filings.sec_documents.is_uuencoded is 'It stands in the submission uuencoded';
comment on column filings.sec_documents.text_start is 'Bytes of the stored submission in front of it';
comment on column filings.sec_documents.text_length is 'Bytes that it takes there';
comment on column filings.sec_documents.size is 'Bytes of the document itself';
comment on column filings.sec_documents.sha256 is 'Hash of the document itself, in hex';
comment on column filings.sec_documents.defect is 'What is wrong with it, e.g. that it was cut off';
comment on column filings.sec_documents.unit is 'Unit that gave the row';
comment on column filings.sec_documents.fetch_id is 'Fetch that gave these values first';
comment on column filings.sec_documents.sent_at is 'When that fetch was sent';
comment on column filings.sec_documents.parser_version is 'Parser that read it';
comment on column filings.sec_documents.cycle_id is 'Cycle that wrote it';
comment on column filings.sec_documents.attempt is 'Claim of that cycle';
comment on column filings.sec_documents.extra is 'Columns of the upstream that nobody knew yet';
create index sec_documents_by_unit on filings.sec_documents (unit);

create table filings.sec_documents_history (
    like filings.sec_documents,
    ended_at  timestamptz(6) not null,
    reason    text not null check (reason in ('revised', 'withdrawn', 'parser')),
    primary key (accession, number, sent_at, reason, parser_version)
);
comment on table filings.sec_documents_history is 'What sec_documents once said otherwise, until when and why no longer';
comment on column filings.sec_documents_history.accession is 'Number of the filing, with its dashes';
comment on column filings.sec_documents_history.number is 'Order in the submission, from 1; the first is the primary document';
comment on column filings.sec_documents_history.filed_date is 'Filing date as the header says, or the index where it has none';
comment on column filings.sec_documents_history.sequence is 'Number that the filer gave; with gaps and repeats';
comment on column filings.sec_documents_history.type is 'Type as given, e.g. 10-K, EX-99.1, GRAPHIC, XML';
comment on column filings.sec_documents_history.filename is 'Name of the file; missing in old filings, and it may repeat';
comment on column filings.sec_documents_history.description is 'Description as given';
comment on column filings.sec_documents_history.wrapper is 'What EDGAR wrapped around it: XBRL, XML, PDF, JSON';
comment on column filings.sec_documents_history.charset is 'utf-8, cp1252 or latin-1, whichever reads all of it first; binary';
comment on column filings.sec_documents_history.is_uuencoded is 'It stands in the submission uuencoded';
comment on column filings.sec_documents_history.text_start is 'Bytes of the stored submission in front of it';
comment on column filings.sec_documents_history.text_length is 'Bytes that it takes there';
comment on column filings.sec_documents_history.size is 'Bytes of the document itself';
comment on column filings.sec_documents_history.sha256 is 'Hash of the document itself, in hex';
comment on column filings.sec_documents_history.defect is 'What is wrong with it, e.g. that it was cut off';
comment on column filings.sec_documents_history.unit is 'Unit that gave the row';
comment on column filings.sec_documents_history.fetch_id is 'Fetch that gave these values first';
comment on column filings.sec_documents_history.sent_at is 'When that fetch was sent';
comment on column filings.sec_documents_history.parser_version is 'Parser that read it';
comment on column filings.sec_documents_history.cycle_id is 'Cycle that wrote it';
comment on column filings.sec_documents_history.attempt is 'Claim of that cycle';
comment on column filings.sec_documents_history.extra is 'Columns of the upstream that nobody knew yet';
comment on column filings.sec_documents_history.ended_at is 'When the fetch was sent that says otherwise';
comment on column filings.sec_documents_history.reason is 'revised by a newer answer, withdrawn from it, or read otherwise by a newer parser';
create index sec_documents_history_by_unit on filings.sec_documents_history (unit);

create table filings.sec_headers (
    accession              text collate "C" not null,
    filed_date             date not null,
    dialect                text not null,
    form                   text,
    header_filed_date      date,
    accepted_at            timestamptz(6),
    accepted_text          text,
    released_date          date,
    changed_date           date,
    effectiveness_date     date,
    period_of_report       date,
    public_document_count  integer,
    items                  jsonb not null,
    is_private_to_public   boolean not null,
    parties                integer not null,
    unknown_labels         integer not null,
    renamed_labels         integer not null,
    unit                   text not null,
    fetch_id               bigint not null,
    sent_at                timestamptz(6) not null,
    parser_version         integer not null,
    cycle_id               bigint not null,
    attempt                integer not null,
    extra                  jsonb,
    primary key (accession)
);
comment on table filings.sec_headers is 'What the header of a submission says of the filing itself';
comment on column filings.sec_headers.accession is 'Number of the filing, with its dashes';
comment on column filings.sec_headers.filed_date is 'Filing date as the header says, or the index where it has none';
comment on column filings.sec_headers.dialect is 'labels, tags (as in the daily feed), or none where there is no header';
comment on column filings.sec_headers.form is 'Form type';
comment on column filings.sec_headers.header_filed_date is 'Filing date in the header';
comment on column filings.sec_headers.accepted_at is 'When EDGAR accepted it; missing in the 1990s';
comment on column filings.sec_headers.accepted_text is 'The same as given, on the clock of New York';
comment on column filings.sec_headers.released_date is 'When it was made public';
comment on column filings.sec_headers.changed_date is 'Date as of change';
comment on column filings.sec_headers.effectiveness_date is 'When it became effective';
comment on column filings.sec_headers.period_of_report is 'Period that it reports on';
comment on column filings.sec_headers.public_document_count is 'Documents as the header counts them';
comment on column filings.sec_headers.items is 'Items, as text, in order';
comment on column filings.sec_headers.is_private_to_public is 'It was made public long after it was filed, e.g. letters';
comment on column filings.sec_headers.parties is 'Parties in the header';
comment on column filings.sec_headers.unknown_labels is 'Fields whose label nobody knows; they are in sec_header_fields';
comment on column filings.sec_headers.renamed_labels is 'Fields that are called otherwise than usual';
comment on column filings.sec_headers.unit is 'Unit that gave the row';
comment on column filings.sec_headers.fetch_id is 'Fetch that gave these values first';
comment on column filings.sec_headers.sent_at is 'When that fetch was sent';
comment on column filings.sec_headers.parser_version is 'Parser that read it';
comment on column filings.sec_headers.cycle_id is 'Cycle that wrote it';
comment on column filings.sec_headers.attempt is 'Claim of that cycle';
comment on column filings.sec_headers.extra is 'Columns of the upstream that nobody knew yet';
create index sec_headers_by_unit on filings.sec_headers (unit);

create table filings.sec_headers_history (
    like filings.sec_headers,
    ended_at  timestamptz(6) not null,
    reason    text not null check (reason in ('revised', 'withdrawn', 'parser')),
    primary key (accession, sent_at, reason, parser_version)
);
comment on table filings.sec_headers_history is 'What sec_headers once said otherwise, until when and why no longer';
comment on column filings.sec_headers_history.accession is 'Number of the filing, with its dashes';
comment on column filings.sec_headers_history.filed_date is 'Filing date as the header says, or the index where it has none';
comment on column filings.sec_headers_history.dialect is 'labels, tags (as in the daily feed), or none where there is no header';
comment on column filings.sec_headers_history.form is 'Form type';
comment on column filings.sec_headers_history.header_filed_date is 'Filing date in the header';
comment on column filings.sec_headers_history.accepted_at is 'When EDGAR accepted it; missing in the 1990s';
comment on column filings.sec_headers_history.accepted_text is 'The same as given, on the clock of New York';
comment on column filings.sec_headers_history.released_date is 'When it was made public';
comment on column filings.sec_headers_history.changed_date is 'Date as of change';
comment on column filings.sec_headers_history.effectiveness_date is 'When it became effective';
comment on column filings.sec_headers_history.period_of_report is 'Period that it reports on';
comment on column filings.sec_headers_history.public_document_count is 'Documents as the header counts them';
comment on column filings.sec_headers_history.items is 'Items, as text, in order';
comment on column filings.sec_headers_history.is_private_to_public is 'It was made public long after it was filed, e.g. letters';
comment on column filings.sec_headers_history.parties is 'Parties in the header';
comment on column filings.sec_headers_history.unknown_labels is 'Fields whose label nobody knows; they are in sec_header_fields';
comment on column filings.sec_headers_history.renamed_labels is 'Fields that are called otherwise than usual';
comment on column filings.sec_headers_history.unit is 'Unit that gave the row';
comment on column filings.sec_headers_history.fetch_id is 'Fetch that gave these values first';
comment on column filings.sec_headers_history.sent_at is 'When that fetch was sent';
comment on column filings.sec_headers_history.parser_version is 'Parser that read it';
comment on column filings.sec_headers_history.cycle_id is 'Cycle that wrote it';
comment on column filings.sec_headers_history.attempt is 'Claim of that cycle';
comment on column filings.sec_headers_history.extra is 'Columns of the upstream that nobody knew yet';
comment on column filings.sec_headers_history.ended_at is 'When the fetch was sent that says otherwise';
comment on column filings.sec_headers_history.reason is 'revised by a newer answer, withdrawn from it, or read otherwise by a newer parser';
create index sec_headers_history_by_unit on filings.sec_headers_history (unit);

create table filings.sec_header_parties (
    accession               text collate "C" not null,
    party                   integer not null,
    filed_date              date not null,
    role                    text not null,
    cik                     bigint,
    name                    text,
    ein                     text,
    sic                     text,
    sic_description         text,
    organization            text,
    state_of_incorporation  text,
    fiscal_year_end         text,
    relationship            text,
    form                    text,
    act                     text,
    file_number             text,
    film_number             text,
    business_street1        text,
    business_street2        text,
    business_city           text,
    business_state          text,
    business_country        text,
    business_zip            text,
    business_phone          text,
    mail_street1            text,
    mail_street2            text,
    mail_city               text,
    mail_state              text,
    mail_country            text,
    mail_zip                text,
    unit                    text not null,
    fetch_id                bigint not null,
    sent_at                 timestamptz(6) not null,
    parser_version          integer not null,
    cycle_id                bigint not null,
    attempt                 integer not null,
    extra                   jsonb,
    primary key (accession, party)
);
comment on table filings.sec_header_parties is 'Parties of filings as their headers describe them on that day';
comment on column filings.sec_header_parties.accession is 'Number of the filing, with its dashes';
comment on column filings.sec_header_parties.party is 'Number of the party in the header, from 1';
comment on column filings.sec_header_parties.filed_date is 'Filing date as the header says, or the index where it has none';
comment on column filings.sec_header_parties.role is 'FILER, ISSUER, REPORTING OWNER, SUBJECT COMPANY, FILED BY, FILED FOR …';
comment on column filings.sec_header_parties.cik is 'Company or person, by the SEC''s number';
comment on column filings.sec_header_parties.name is 'Conformed name';
comment on column filings.sec_header_parties.ein is 'Employer''s number, called IRS NUMBER until 2025; zeros where unknown';
comment on column filings.sec_header_parties.sic is 'Industry code';
comment on column filings.sec_header_parties.sic_description is 'Industry in words';
comment on column filings.sec_header_parties.organization is 'Office of the SEC that reviews it';
comment on column filings.sec_header_parties.state_of_incorporation is 'EDGAR''s code of state or country';
comment on column filings.sec_header_parties.fiscal_year_end is 'Month and day, MMDD';
comment on column filings.sec_header_parties.relationship is 'Relationship of an owner, in old headers';
comment on column filings.sec_header_parties.form is 'Form type for this party';
comment on column filings.sec_header_parties.act is 'Act by the last two digits of its year, e.g. 34; else as given';
comment on column filings.sec_header_parties.file_number is 'SEC file number';
comment on column filings.sec_header_parties.film_number is 'Film number';
comment on column filings.sec_header_parties.business_street1 is 'Business address: street1';
comment on column filings.sec_header_parties.business_street2 is 'Business address: street2';
comment on column filings.sec_header_parties.business_city is 'Business address: city';
comment on column filings.sec_header_parties.business_state is 'Business address: state';
comment on column filings.sec_header_parties.business_country is 'Business address: country';
comment on column filings.sec_header_parties.business_zip is 'Business address: zip';
comment on column filings.sec_header_parties.business_phone is 'Business phone as given';
comment on column filings.sec_header_parties.mail_street1 is 'Mailing address: street1';
comment on column filings.sec_header_parties.mail_street2 is 'Mailing address: street2';
comment on column filings.sec_header_parties.mail_city is 'Mailing address: city';
comment on column filings.sec_header_parties.mail_state is 'Mailing address: state';
comment on column filings.sec_header_parties.mail_country is 'Mailing address: country';
comment on column filings.sec_header_parties.mail_zip is 'Mailing address: zip';
comment on column filings.sec_header_parties.unit is 'Unit that gave the row';
comment on column filings.sec_header_parties.fetch_id is 'Fetch that gave these values first';
comment on column filings.sec_header_parties.sent_at is 'When that fetch was sent';
comment on column filings.sec_header_parties.parser_version is 'Parser that read it';
comment on column filings.sec_header_parties.cycle_id is 'Cycle that wrote it';
comment on column filings.sec_header_parties.attempt is 'Claim of that cycle';
comment on column filings.sec_header_parties.extra is 'Columns of the upstream that nobody knew yet';
create index sec_header_parties_by_unit on filings.sec_header_parties (unit);

create table filings.sec_header_parties_history (
    like filings.sec_header_parties,
    ended_at  timestamptz(6) not null,
    reason    text not null check (reason in ('revised', 'withdrawn', 'parser')),
    primary key (accession, party, sent_at, reason, parser_version)
);
comment on table filings.sec_header_parties_history is 'What sec_header_parties once said otherwise, until when and why no longer';
comment on column filings.sec_header_parties_history.accession is 'Number of the filing, with its dashes';
comment on column filings.sec_header_parties_history.party is 'Number of the party in the header, from 1';
comment on column filings.sec_header_parties_history.filed_date is 'Filing date as the header says, or the index where it has none';
comment on column filings.sec_header_parties_history.role is 'FILER, ISSUER, REPORTING OWNER, SUBJECT COMPANY, FILED BY, FILED FOR …';
comment on column filings.sec_header_parties_history.cik is 'Company or person, by the SEC''s number';
comment on column filings.sec_header_parties_history.name is 'Conformed name';
comment on column filings.sec_header_parties_history.ein is 'Employer''s number, called IRS NUMBER until 2025; zeros where unknown';
comment on column filings.sec_header_parties_history.sic is 'Industry code';
comment on column filings.sec_header_parties_history.sic_description is 'Industry in words';
comment on column filings.sec_header_parties_history.organization is 'Office of the SEC that reviews it';
comment on column filings.sec_header_parties_history.state_of_incorporation is 'EDGAR''s code of state or country';
comment on column filings.sec_header_parties_history.fiscal_year_end is 'Month and day, MMDD';
comment on column filings.sec_header_parties_history.relationship is 'Relationship of an owner, in old headers';
comment on column filings.sec_header_parties_history.form is 'Form type for this party';
comment on column filings.sec_header_parties_history.act is 'Act by the last two digits of its year, e.g. 34; else as given';
comment on column filings.sec_header_parties_history.file_number is 'SEC file number';
comment on column filings.sec_header_parties_history.film_number is 'Film number';
comment on column filings.sec_header_parties_history.business_street1 is 'Business address: street1';
comment on column filings.sec_header_parties_history.business_street2 is 'Business address: street2';
comment on column filings.sec_header_parties_history.business_city is 'Business address: city';
comment on column filings.sec_header_parties_history.business_state is 'Business address: state';
comment on column filings.sec_header_parties_history.business_country is 'Business address: country';
comment on column filings.sec_header_parties_history.business_zip is 'Business address: zip';
comment on column filings.sec_header_parties_history.business_phone is 'Business phone as given';
comment on column filings.sec_header_parties_history.mail_street1 is 'Mailing address: street1';
comment on column filings.sec_header_parties_history.mail_street2 is 'Mailing address: street2';
comment on column filings.sec_header_parties_history.mail_city is 'Mailing address: city';
comment on column filings.sec_header_parties_history.mail_state is 'Mailing address: state';
comment on column filings.sec_header_parties_history.mail_country is 'Mailing address: country';
comment on column filings.sec_header_parties_history.mail_zip is 'Mailing address: zip';
comment on column filings.sec_header_parties_history.unit is 'Unit that gave the row';
comment on column filings.sec_header_parties_history.fetch_id is 'Fetch that gave these values first';
comment on column filings.sec_header_parties_history.sent_at is 'When that fetch was sent';
comment on column filings.sec_header_parties_history.parser_version is 'Parser that read it';
comment on column filings.sec_header_parties_history.cycle_id is 'Cycle that wrote it';
comment on column filings.sec_header_parties_history.attempt is 'Claim of that cycle';
comment on column filings.sec_header_parties_history.extra is 'Columns of the upstream that nobody knew yet';
comment on column filings.sec_header_parties_history.ended_at is 'When the fetch was sent that says otherwise';
comment on column filings.sec_header_parties_history.reason is 'revised by a newer answer, withdrawn from it, or read otherwise by a newer parser';
create index sec_header_parties_history_by_unit on filings.sec_header_parties_history (unit);

create table filings.sec_header_former_names (
    accession       text collate "C" not null,
    party           integer not null,
    number          integer not null,
    filed_date      date not null,
    cik             bigint,
    former_name     text,
    changed_date    date,
    unit            text not null,
    fetch_id        bigint not null,
    sent_at         timestamptz(6) not null,
    parser_version  integer not null,
    cycle_id        bigint not null,
    attempt         integer not null,
    extra           jsonb,
    primary key (accession, party, number)
);
comment on table filings.sec_header_former_names is 'Former names of parties as the headers of filings list them';
comment on column filings.sec_header_former_names.accession is 'Number of the filing, with its dashes';
comment on column filings.sec_header_former_names.party is 'Number of the party in the header, from 1';
comment on column filings.sec_header_former_names.number is 'Order in the header, from 1';
comment on column filings.sec_header_former_names.filed_date is 'Filing date as the header says, or the index where it has none';
comment on column filings.sec_header_former_names.cik is 'Company or person, by the SEC''s number';
comment on column filings.sec_header_former_names.former_name is 'Name until then';
comment on column filings.sec_header_former_names.changed_date is 'Day of the change';
comment on column filings.sec_header_former_names.unit is 'Unit that gave the row';
comment on column filings.sec_header_former_names.fetch_id is 'Fetch that gave these values first';
comment on column filings.sec_header_former_names.sent_at is 'When that fetch was sent';
comment on column filings.sec_header_former_names.parser_version is 'Parser that read it';
comment on column filings.sec_header_former_names.cycle_id is 'Cycle that wrote it';
comment on column filings.sec_header_former_names.attempt is 'Claim of that cycle';
comment on column filings.sec_header_former_names.extra is 'Columns of the upstream that nobody knew yet';
create index sec_header_former_names_by_unit on filings.sec_header_former_names (unit);

create table filings.sec_header_former_names_history (
    like filings.sec_header_former_names,
    ended_at  timestamptz(6) not null,
    reason    text not null check (reason in ('revised', 'withdrawn', 'parser')),
    primary key (accession, party, number, sent_at, reason, parser_version)
);
comment on table filings.sec_header_former_names_history is 'What sec_header_former_names once said otherwise, until when and why no longer';
comment on column filings.sec_header_former_names_history.accession is 'Number of the filing, with its dashes';
comment on column filings.sec_header_former_names_history.party is 'Number of the party in the header, from 1';
comment on column filings.sec_header_former_names_history.number is 'Order in the header, from 1';
comment on column filings.sec_header_former_names_history.filed_date is 'Filing date as the header says, or the index where it has none';
comment on column filings.sec_header_former_names_history.cik is 'Company or person, by the SEC''s number';
comment on column filings.sec_header_former_names_history.former_name is 'Name until then';
comment on column filings.sec_header_former_names_history.changed_date is 'Day of the change';
comment on column filings.sec_header_former_names_history.unit is 'Unit that gave the row';
comment on column filings.sec_header_former_names_history.fetch_id is 'Fetch that gave these values first';
comment on column filings.sec_header_former_names_history.sent_at is 'When that fetch was sent';
comment on column filings.sec_header_former_names_history.parser_version is 'Parser that read it';
comment on column filings.sec_header_former_names_history.cycle_id is 'Cycle that wrote it';
comment on column filings.sec_header_former_names_history.attempt is 'Claim of that cycle';
comment on column filings.sec_header_former_names_history.extra is 'Columns of the upstream that nobody knew yet';
comment on column filings.sec_header_former_names_history.ended_at is 'When the fetch was sent that says otherwise';
comment on column filings.sec_header_former_names_history.reason is 'revised by a newer answer, withdrawn from it, or read otherwise by a newer parser';
create index sec_header_former_names_history_by_unit on filings.sec_header_former_names_history (unit);

create table filings.sec_header_fields (
    accession       text collate "C" not null,
    number          integer not null,
    filed_date      date not null,
    party           integer not null,
    role            text not null,
    section         text not null,
    section_number  integer not null,
    label           text not null,
    meaning         text,
    spelling        text not null,
    value           text not null,
    unit            text not null,
    fetch_id        bigint not null,
    sent_at         timestamptz(6) not null,
    parser_version  integer not null,
    cycle_id        bigint not null,
    attempt         integer not null,
    extra           jsonb,
    primary key (accession, number)
);
comment on table filings.sec_header_fields is 'Every labelled value of a header, known or not, with the group that it stands in';
comment on column filings.sec_header_fields.accession is 'Number of the filing, with its dashes';
comment on column filings.sec_header_fields.number is 'Order in the header, from 1';
comment on column filings.sec_header_fields.filed_date is 'Filing date as the header says, or the index where it has none';
comment on column filings.sec_header_fields.party is 'Number of the party, 0 where it is about the filing itself';
comment on column filings.sec_header_fields.role is 'Role of the party, empty for the filing itself';
comment on column filings.sec_header_fields.section is 'Group within it, e.g. COMPANY DATA, MAIL ADDRESS, SERIES; empty outside of groups';
comment on column filings.sec_header_fields.section_number is 'Which of the groups of that name, from 1; 0 outside of groups';
comment on column filings.sec_header_fields.label is 'Label as given';
comment on column filings.sec_header_fields.meaning is 'What it says, by one name for all spellings; null: nobody knows';
comment on column filings.sec_header_fields.spelling is 'usual, other (renamed, misspelt or a tag''s) or unknown';
comment on column filings.sec_header_fields.value is 'Value as given';
comment on column filings.sec_header_fields.unit is 'Unit that gave the row';
comment on column filings.sec_header_fields.fetch_id is 'Fetch that gave these values first';
comment on column filings.sec_header_fields.sent_at is 'When that fetch was sent';
comment on column filings.sec_header_fields.parser_version is 'Parser that read it';
comment on column filings.sec_header_fields.cycle_id is 'Cycle that wrote it';
comment on column filings.sec_header_fields.attempt is 'Claim of that cycle';
comment on column filings.sec_header_fields.extra is 'Columns of the upstream that nobody knew yet';
create index sec_header_fields_by_unit on filings.sec_header_fields (unit);

create table filings.sec_header_fields_history (
    like filings.sec_header_fields,
    ended_at  timestamptz(6) not null,
    reason    text not null check (reason in ('revised', 'withdrawn', 'parser')),
    primary key (accession, number, sent_at, reason, parser_version)
);
comment on table filings.sec_header_fields_history is 'What sec_header_fields once said otherwise, until when and why no longer';
comment on column filings.sec_header_fields_history.accession is 'Number of the filing, with its dashes';
comment on column filings.sec_header_fields_history.number is 'Order in the header, from 1';
comment on column filings.sec_header_fields_history.filed_date is 'Filing date as the header says, or the index where it has none';
comment on column filings.sec_header_fields_history.party is 'Number of the party, 0 where it is about the filing itself';
comment on column filings.sec_header_fields_history.role is 'Role of the party, empty for the filing itself';
comment on column filings.sec_header_fields_history.section is 'Group within it, e.g. COMPANY DATA, MAIL ADDRESS, SERIES; empty outside of groups';
comment on column filings.sec_header_fields_history.section_number is 'Which of the groups of that name, from 1; 0 outside of groups';
comment on column filings.sec_header_fields_history.label is 'Label as given';
comment on column filings.sec_header_fields_history.meaning is 'What it says, by one name for all spellings; null: nobody knows';
comment on column filings.sec_header_fields_history.spelling is 'usual, other (renamed, misspelt or a tag''s) or unknown';
comment on column filings.sec_header_fields_history.value is 'Value as given';
comment on column filings.sec_header_fields_history.unit is 'Unit that gave the row';
comment on column filings.sec_header_fields_history.fetch_id is 'Fetch that gave these values first';
comment on column filings.sec_header_fields_history.sent_at is 'When that fetch was sent';
comment on column filings.sec_header_fields_history.parser_version is 'Parser that read it';
comment on column filings.sec_header_fields_history.cycle_id is 'Cycle that wrote it';
comment on column filings.sec_header_fields_history.attempt is 'Claim of that cycle';
comment on column filings.sec_header_fields_history.extra is 'Columns of the upstream that nobody knew yet';
comment on column filings.sec_header_fields_history.ended_at is 'When the fetch was sent that says otherwise';
comment on column filings.sec_header_fields_history.reason is 'revised by a newer answer, withdrawn from it, or read otherwise by a newer parser';
create index sec_header_fields_history_by_unit on filings.sec_header_fields_history (unit);

create table filings.sec_xbrl (
    accession       text collate "C" not null,
    filed_date      date not null,
    state           text not null,
    instance        text,
    unit            text not null,
    fetch_id        bigint not null,
    sent_at         timestamptz(6) not null,
    parser_version  integer not null,
    cycle_id        bigint not null,
    attempt         integer not null,
    extra           jsonb,
    primary key (accession)
);
comment on table filings.sec_xbrl is 'What XBRL a filing had when its submission was read; filings.sec_xbrl_states says how it stands now';
comment on column filings.sec_xbrl.accession is 'Number of the filing, with its dashes';
comment on column filings.sec_xbrl.filed_date is 'Filing date as the header says, or the index where it has none';
comment on column filings.sec_xbrl.state is 'facts, none (it has no XBRL) or not_converted (inline, its instance is not made yet)';
comment on column filings.sec_xbrl.instance is 'Name that the instance of inline XBRL will have';
comment on column filings.sec_xbrl.unit is 'Unit that gave the row';
comment on column filings.sec_xbrl.fetch_id is 'Fetch that gave these values first';
comment on column filings.sec_xbrl.sent_at is 'When that fetch was sent';
comment on column filings.sec_xbrl.parser_version is 'Parser that read it';
comment on column filings.sec_xbrl.cycle_id is 'Cycle that wrote it';
comment on column filings.sec_xbrl.attempt is 'Claim of that cycle';
comment on column filings.sec_xbrl.extra is 'Columns of the upstream that nobody knew yet';
create index sec_xbrl_by_unit on filings.sec_xbrl (unit);

create table filings.sec_xbrl_history (
    like filings.sec_xbrl,
    ended_at  timestamptz(6) not null,
    reason    text not null check (reason in ('revised', 'withdrawn', 'parser')),
    primary key (accession, sent_at, reason, parser_version)
);
comment on table filings.sec_xbrl_history is 'What sec_xbrl once said otherwise, until when and why no longer';
comment on column filings.sec_xbrl_history.accession is 'Number of the filing, with its dashes';
comment on column filings.sec_xbrl_history.filed_date is 'Filing date as the header says, or the index where it has none';
comment on column filings.sec_xbrl_history.state is 'facts, none (it has no XBRL) or not_converted (inline, its instance is not made yet)';
comment on column filings.sec_xbrl_history.instance is 'Name that the instance of inline XBRL will have';
comment on column filings.sec_xbrl_history.unit is 'Unit that gave the row';
comment on column filings.sec_xbrl_history.fetch_id is 'Fetch that gave these values first';
comment on column filings.sec_xbrl_history.sent_at is 'When that fetch was sent';
comment on column filings.sec_xbrl_history.parser_version is 'Parser that read it';
comment on column filings.sec_xbrl_history.cycle_id is 'Cycle that wrote it';
comment on column filings.sec_xbrl_history.attempt is 'Claim of that cycle';
comment on column filings.sec_xbrl_history.extra is 'Columns of the upstream that nobody knew yet';
comment on column filings.sec_xbrl_history.ended_at is 'When the fetch was sent that says otherwise';
comment on column filings.sec_xbrl_history.reason is 'revised by a newer answer, withdrawn from it, or read otherwise by a newer parser';
create index sec_xbrl_history_by_unit on filings.sec_xbrl_history (unit);

create table filings.sec_xbrl_instances (
    accession       text collate "C" not null,
    instance        text collate "C" not null,
    filed_date      date not null,
    is_extracted    boolean not null,
    facts           integer not null,
    rejected        integer not null,
    contexts        integer not null,
    units           integer not null,
    footnotes       integer not null,
    unit            text not null,
    fetch_id        bigint not null,
    sent_at         timestamptz(6) not null,
    parser_version  integer not null,
    cycle_id        bigint not null,
    attempt         integer not null,
    extra           jsonb,
    primary key (accession, instance)
);
comment on table filings.sec_xbrl_instances is 'XBRL instances that were read, and how much they hold';
comment on column filings.sec_xbrl_instances.accession is 'Number of the filing, with its dashes';
comment on column filings.sec_xbrl_instances.instance is 'Name of the instance''s file within the filing';
comment on column filings.sec_xbrl_instances.filed_date is 'Filing date as the header says, or the index where it has none';
comment on column filings.sec_xbrl_instances.is_extracted is 'EDGAR extracted it from inline XBRL';
comment on column filings.sec_xbrl_instances.facts is 'Facts in it, those that could not be read included';
comment on column filings.sec_xbrl_instances.rejected is 'Facts and contexts that could not be read';
comment on column filings.sec_xbrl_instances.contexts is 'Contexts';
comment on column filings.sec_xbrl_instances.units is 'Units';
comment on column filings.sec_xbrl_instances.footnotes is 'Footnotes, by facts that they stand for';
comment on column filings.sec_xbrl_instances.unit is 'Unit that gave the row';
comment on column filings.sec_xbrl_instances.fetch_id is 'Fetch that gave these values first';
comment on column filings.sec_xbrl_instances.sent_at is 'When that fetch was sent';
comment on column filings.sec_xbrl_instances.parser_version is 'Parser that read it';
comment on column filings.sec_xbrl_instances.cycle_id is 'Cycle that wrote it';
comment on column filings.sec_xbrl_instances.attempt is 'Claim of that cycle';
comment on column filings.sec_xbrl_instances.extra is 'Columns of the upstream that nobody knew yet';
create index sec_xbrl_instances_by_unit on filings.sec_xbrl_instances (unit);

create table filings.sec_xbrl_instances_history (
    like filings.sec_xbrl_instances,
    ended_at  timestamptz(6) not null,
    reason    text not null check (reason in ('revised', 'withdrawn', 'parser')),
    primary key (accession, instance, sent_at, reason, parser_version)
);
comment on table filings.sec_xbrl_instances_history is 'What sec_xbrl_instances once said otherwise, until when and why no longer';
comment on column filings.sec_xbrl_instances_history.accession is 'Number of the filing, with its dashes';
comment on column filings.sec_xbrl_instances_history.instance is 'Name of the instance''s file within the filing';
comment on column filings.sec_xbrl_instances_history.filed_date is 'Filing date as the header says, or the index where it has none';
comment on column filings.sec_xbrl_instances_history.is_extracted is 'EDGAR extracted it from inline XBRL';
comment on column filings.sec_xbrl_instances_history.facts is 'Facts in it, those that could not be read included';
comment on column filings.sec_xbrl_instances_history.rejected is 'Facts and contexts that could not be read';
comment on column filings.sec_xbrl_instances_history.contexts is 'Contexts';
comment on column filings.sec_xbrl_instances_history.units is 'Units';
comment on column filings.sec_xbrl_instances_history.footnotes is 'Footnotes, by facts that they stand for';
comment on column filings.sec_xbrl_instances_history.unit is 'Unit that gave the row';
comment on column filings.sec_xbrl_instances_history.fetch_id is 'Fetch that gave these values first';
comment on column filings.sec_xbrl_instances_history.sent_at is 'When that fetch was sent';
comment on column filings.sec_xbrl_instances_history.parser_version is 'Parser that read it';
comment on column filings.sec_xbrl_instances_history.cycle_id is 'Cycle that wrote it';
comment on column filings.sec_xbrl_instances_history.attempt is 'Claim of that cycle';
comment on column filings.sec_xbrl_instances_history.extra is 'Columns of the upstream that nobody knew yet';
comment on column filings.sec_xbrl_instances_history.ended_at is 'When the fetch was sent that says otherwise';
comment on column filings.sec_xbrl_instances_history.reason is 'revised by a newer answer, withdrawn from it, or read otherwise by a newer parser';
create index sec_xbrl_instances_history_by_unit on filings.sec_xbrl_instances_history (unit);

create table filings.sec_xbrl_facts (
    accession       text collate "C" not null,
    instance        text collate "C" not null,
    number          integer not null,
    filed_date      date not null,
    namespace       text not null,
    concept         text not null,
    entity_scheme   text not null,
    entity          text not null,
    period_type     text not null,
    period_start    date,
    period_end      date,
    dimensions      jsonb,
    measure         text,
    decimals        text,
    precision       text,
    is_nil          boolean not null,
    value_text      text,
    value           numeric(38, 15),
    language        text,
    context_id      text not null,
    unit_id         text,
    fact_id         text,
    unit            text not null,
    fetch_id        bigint not null,
    sent_at         timestamptz(6) not null,
    parser_version  integer not null,
    cycle_id        bigint not null,
    attempt         integer not null,
    extra           jsonb,
    primary key (accession, instance, number)
);
comment on table filings.sec_xbrl_facts is 'XBRL facts of filings as filed, each with its period, dimensions and unit';
comment on column filings.sec_xbrl_facts.accession is 'Number of the filing, with its dashes';
comment on column filings.sec_xbrl_facts.instance is 'Name of the instance''s file within the filing';
comment on column filings.sec_xbrl_facts.number is 'Order in the instance, from 1';
comment on column filings.sec_xbrl_facts.filed_date is 'Filing date as the header says, or the index where it has none';
comment on column filings.sec_xbrl_facts.namespace is 'Namespace of the concept, which names taxonomy and year';
comment on column filings.sec_xbrl_facts.concept is 'Concept with the instance''s prefix, e.g. us-gaap:Assets';
comment on column filings.sec_xbrl_facts.entity_scheme is 'What kind of number names the entity';
comment on column filings.sec_xbrl_facts.entity is 'Whom it is about, usually a CIK with zeros in front';
comment on column filings.sec_xbrl_facts.period_type is 'instant, duration or forever';
comment on column filings.sec_xbrl_facts.period_start is 'First day of a duration, of any length';
comment on column filings.sec_xbrl_facts.period_end is 'Last day, or the day at whose end it held';
comment on column filings.sec_xbrl_facts.dimensions is 'Member of each axis; of a typed one its element and value';
comment on column filings.sec_xbrl_facts.measure is 'Unit from its measures, e.g. USD, USD/shares, pure; null for text';
comment on column filings.sec_xbrl_facts.decimals is 'Decimals as given, e.g. -6 or INF';
comment on column filings.sec_xbrl_facts.precision is 'Precision as given, in old instances';
comment on column filings.sec_xbrl_facts.is_nil is 'It is said to have no value';
comment on column filings.sec_xbrl_facts.value_text is 'Value as given, scaled; null where it is nil';
comment on column filings.sec_xbrl_facts.value is 'The same as a number; null for text and for numbers of more digits than fit';
comment on column filings.sec_xbrl_facts.language is 'Language of a text';
comment on column filings.sec_xbrl_facts.context_id is 'Name of the context in the instance';
comment on column filings.sec_xbrl_facts.unit_id is 'Name of the unit in the instance';
comment on column filings.sec_xbrl_facts.fact_id is 'Name of the fact in the instance';
comment on column filings.sec_xbrl_facts.unit is 'Unit that gave the row';
comment on column filings.sec_xbrl_facts.fetch_id is 'Fetch that gave these values first';
comment on column filings.sec_xbrl_facts.sent_at is 'When that fetch was sent';
comment on column filings.sec_xbrl_facts.parser_version is 'Parser that read it';
comment on column filings.sec_xbrl_facts.cycle_id is 'Cycle that wrote it';
comment on column filings.sec_xbrl_facts.attempt is 'Claim of that cycle';
comment on column filings.sec_xbrl_facts.extra is 'Columns of the upstream that nobody knew yet';
create index sec_xbrl_facts_by_unit on filings.sec_xbrl_facts (unit);

create table filings.sec_xbrl_facts_history (
    like filings.sec_xbrl_facts,
    ended_at  timestamptz(6) not null,
    reason    text not null check (reason in ('revised', 'withdrawn', 'parser')),
    primary key (accession, instance, number, sent_at, reason, parser_version)
);
comment on table filings.sec_xbrl_facts_history is 'What sec_xbrl_facts once said otherwise, until when and why no longer';
comment on column filings.sec_xbrl_facts_history.accession is 'Number of the filing, with its dashes';
comment on column filings.sec_xbrl_facts_history.instance is 'Name of the instance''s file within the filing';
comment on column filings.sec_xbrl_facts_history.number is 'Order in the instance, from 1';
comment on column filings.sec_xbrl_facts_history.filed_date is 'Filing date as the header says, or the index where it has none';
comment on column filings.sec_xbrl_facts_history.namespace is 'Namespace of the concept, which names taxonomy and year';
comment on column filings.sec_xbrl_facts_history.concept is 'Concept with the instance''s prefix, e.g. us-gaap:Assets';
comment on column filings.sec_xbrl_facts_history.entity_scheme is 'What kind of number names the entity';
comment on column filings.sec_xbrl_facts_history.entity is 'Whom it is about, usually a CIK with zeros in front';
comment on column filings.sec_xbrl_facts_history.period_type is 'instant, duration or forever';
comment on column filings.sec_xbrl_facts_history.period_start is 'First day of a duration, of any length';
comment on column filings.sec_xbrl_facts_history.period_end is 'Last day, or the day at whose end it held';
comment on column filings.sec_xbrl_facts_history.dimensions is 'Member of each axis; of a typed one its element and value';
comment on column filings.sec_xbrl_facts_history.measure is 'Unit from its measures, e.g. USD, USD/shares, pure; null for text';
comment on column filings.sec_xbrl_facts_history.decimals is 'Decimals as given, e.g. -6 or INF';
comment on column filings.sec_xbrl_facts_history.precision is 'Precision as given, in old instances';
comment on column filings.sec_xbrl_facts_history.is_nil is 'It is said to have no value';
comment on column filings.sec_xbrl_facts_history.value_text is 'Value as given, scaled; null where it is nil';
comment on column filings.sec_xbrl_facts_history.value is 'The same as a number; null for text and for numbers of more digits than fit';
comment on column filings.sec_xbrl_facts_history.language is 'Language of a text';
comment on column filings.sec_xbrl_facts_history.context_id is 'Name of the context in the instance';
comment on column filings.sec_xbrl_facts_history.unit_id is 'Name of the unit in the instance';
comment on column filings.sec_xbrl_facts_history.fact_id is 'Name of the fact in the instance';
comment on column filings.sec_xbrl_facts_history.unit is 'Unit that gave the row';
comment on column filings.sec_xbrl_facts_history.fetch_id is 'Fetch that gave these values first';
comment on column filings.sec_xbrl_facts_history.sent_at is 'When that fetch was sent';
comment on column filings.sec_xbrl_facts_history.parser_version is 'Parser that read it';
comment on column filings.sec_xbrl_facts_history.cycle_id is 'Cycle that wrote it';
comment on column filings.sec_xbrl_facts_history.attempt is 'Claim of that cycle';
comment on column filings.sec_xbrl_facts_history.extra is 'Columns of the upstream that nobody knew yet';
comment on column filings.sec_xbrl_facts_history.ended_at is 'When the fetch was sent that says otherwise';
comment on column filings.sec_xbrl_facts_history.reason is 'revised by a newer answer, withdrawn from it, or read otherwise by a newer parser';
create index sec_xbrl_facts_history_by_unit on filings.sec_xbrl_facts_history (unit);

create table filings.sec_xbrl_footnotes (
    accession       text collate "C" not null,
    instance        text collate "C" not null,
    number          integer not null,
    fact_number     integer not null,
    filed_date      date not null,
    arcrole         text,
    role            text,
    language        text,
    footnote        text not null,
    unit            text not null,
    fetch_id        bigint not null,
    sent_at         timestamptz(6) not null,
    parser_version  integer not null,
    cycle_id        bigint not null,
    attempt         integer not null,
    extra           jsonb,
    primary key (accession, instance, number, fact_number)
);
comment on table filings.sec_xbrl_footnotes is 'Footnotes of XBRL facts, once for each fact that they stand for';
comment on column filings.sec_xbrl_footnotes.accession is 'Number of the filing, with its dashes';
comment on column filings.sec_xbrl_footnotes.instance is 'Name of the instance''s file within the filing';
comment on column filings.sec_xbrl_footnotes.number is 'Order of the footnote in the instance, from 1';
comment on column filings.sec_xbrl_footnotes.fact_number is 'Number of the fact, 0 where it belongs to none of the instance';
comment on column filings.sec_xbrl_footnotes.filed_date is 'Filing date as the header says, or the index where it has none';
comment on column filings.sec_xbrl_footnotes.arcrole is 'How it relates to the fact';
comment on column filings.sec_xbrl_footnotes.role is 'Role of the footnote';
comment on column filings.sec_xbrl_footnotes.language is 'Language';
comment on column filings.sec_xbrl_footnotes.footnote is 'Text without markup';
comment on column filings.sec_xbrl_footnotes.unit is 'Unit that gave the row';
comment on column filings.sec_xbrl_footnotes.fetch_id is 'Fetch that gave these values first';
comment on column filings.sec_xbrl_footnotes.sent_at is 'When that fetch was sent';
comment on column filings.sec_xbrl_footnotes.parser_version is 'Parser that read it';
comment on column filings.sec_xbrl_footnotes.cycle_id is 'Cycle that wrote it';
comment on column filings.sec_xbrl_footnotes.attempt is 'Claim of that cycle';
comment on column filings.sec_xbrl_footnotes.extra is 'Columns of the upstream that nobody knew yet';
create index sec_xbrl_footnotes_by_unit on filings.sec_xbrl_footnotes (unit);

create table filings.sec_xbrl_footnotes_history (
    like filings.sec_xbrl_footnotes,
    ended_at  timestamptz(6) not null,
    reason    text not null check (reason in ('revised', 'withdrawn', 'parser')),
    primary key (accession, instance, number, fact_number, sent_at, reason, parser_version)
);
comment on table filings.sec_xbrl_footnotes_history is 'What sec_xbrl_footnotes once said otherwise, until when and why no longer';
comment on column filings.sec_xbrl_footnotes_history.accession is 'Number of the filing, with its dashes';
comment on column filings.sec_xbrl_footnotes_history.instance is 'Name of the instance''s file within the filing';
comment on column filings.sec_xbrl_footnotes_history.number is 'Order of the footnote in the instance, from 1';
comment on column filings.sec_xbrl_footnotes_history.fact_number is 'Number of the fact, 0 where it belongs to none of the instance';
comment on column filings.sec_xbrl_footnotes_history.filed_date is 'Filing date as the header says, or the index where it has none';
comment on column filings.sec_xbrl_footnotes_history.arcrole is 'How it relates to the fact';
comment on column filings.sec_xbrl_footnotes_history.role is 'Role of the footnote';
comment on column filings.sec_xbrl_footnotes_history.language is 'Language';
comment on column filings.sec_xbrl_footnotes_history.footnote is 'Text without markup';
comment on column filings.sec_xbrl_footnotes_history.unit is 'Unit that gave the row';
comment on column filings.sec_xbrl_footnotes_history.fetch_id is 'Fetch that gave these values first';
comment on column filings.sec_xbrl_footnotes_history.sent_at is 'When that fetch was sent';
comment on column filings.sec_xbrl_footnotes_history.parser_version is 'Parser that read it';
comment on column filings.sec_xbrl_footnotes_history.cycle_id is 'Cycle that wrote it';
comment on column filings.sec_xbrl_footnotes_history.attempt is 'Claim of that cycle';
comment on column filings.sec_xbrl_footnotes_history.extra is 'Columns of the upstream that nobody knew yet';
comment on column filings.sec_xbrl_footnotes_history.ended_at is 'When the fetch was sent that says otherwise';
comment on column filings.sec_xbrl_footnotes_history.reason is 'revised by a newer answer, withdrawn from it, or read otherwise by a newer parser';
create index sec_xbrl_footnotes_history_by_unit on filings.sec_xbrl_footnotes_history (unit);

create view filings.sec_due_texts as
    select w.subject || ' ' || w.form as subject, w.is_all, w.is_nasdaq, w.is_nyse
      from filings.sec_wanted w
      -- Of nearly all that was found lately the text came lately: one look tells these, and each of the others has one of its own.
      left join (select distinct f.unit from collect.fetches f
                  where f.stream = 'sec.filings' and f.answer_class in ('data', 'empty', 'absent')
                    and f.sent_at >= (select collect.clock() - interval '11 days')) l on l.unit = w.accession || '/text'
      left join lateral (select min(f.sent_at) as first_at, max(f.sent_at) as last_at,
                                bool_or(f.answer_class in ('data', 'empty', 'absent')) as is_there
                           from collect.fetches f
                          where f.stream = 'sec.filings' and f.unit = w.accession || '/text') a on true
     where l.unit is null and not coalesce(a.is_there, false)
       and (a.last_at is null
            or a.last_at < (select collect.clock()) - greatest((a.last_at - a.first_at) / 4, interval '10 minutes'))
       and w.accession not in (select split_part(p.key, '/', 1) from collect.pending p
                                where p.stream = 'sec.filings' and p.why <> 'not_published');
comment on view filings.sec_due_texts is
    'Filings that are wanted and not held, as key and form: at once, where the SEC did not have the text yet after ten minutes, then '
    'less and less often; those that failed are pending';

create view filings.sec_due_headers as
    select f.request_key as subject, true as is_due
      from collect.fetches f
      left join (select h.unit, max(h.sent_at) as sent_at from collect.fetches h
                  where h.stream = 'sec.document_headers' and h.answer_class in ('data', 'empty')
                    and h.sent_at >= (select collect.clock() - interval '30 days')
                  group by h.unit) h on h.unit = split_part(f.unit, '/', 1) || '/header' and h.sent_at >= f.sent_at
     where f.stream = 'sec.filings' and f.unit not like 'index/%' and f.answer_class = 'data' and f.applied_at is not null
       and f.sent_at >= (select collect.clock() - interval '30 days') and h.unit is null
       and split_part(f.unit, '/', 1) not in (select split_part(p.key, '/', 1) from collect.pending p
                                               where p.stream = 'sec.document_headers');
comment on view filings.sec_due_headers is 'Filings of the last thirty days whose submission was read and whose header was not';

create index sec_xbrl_not_converted on filings.sec_xbrl (sent_at) where state = 'not_converted';

create view filings.sec_due_xbrl as
    select f.request_key as subject, true as is_due
      from collect.fetches f
      left join (select x.unit, max(x.sent_at) as sent_at from collect.fetches x
                  where x.stream = 'sec.xbrl_facts' and x.answer_class in ('data', 'empty')
                    and x.sent_at >= (select collect.clock() - interval '30 days')
                  group by x.unit) x on x.unit = split_part(f.unit, '/', 1) || '/xbrl' and x.sent_at >= f.sent_at
     where f.stream = 'sec.filings' and f.unit not like 'index/%' and f.answer_class = 'data' and f.applied_at is not null
       and f.sent_at >= (select collect.clock() - interval '30 days') and x.unit is null
       and split_part(f.unit, '/', 1) not in (select split_part(p.key, '/', 1) from collect.pending p
                                               where p.stream = 'sec.xbrl_facts')
    union all
    select k.request_key || '/' || x.instance, true
      from filings.sec_xbrl x
     cross join lateral (select h.request_key from collect.fetches h
                          where h.stream = 'sec.xbrl_facts' and h.unit = x.unit order by h.sent_at desc limit 1) k
      left join lateral (select max(i.sent_at) as asked_at, bool_or(i.answer_class = 'data') as is_there
                           from collect.fetches i
                          -- Accessions are in the order of their bytes here, and units are not: an index must serve both.
                          where i.stream = 'sec.xbrl_facts' and i.unit = (x.accession || '/instance') collate "default") i on true
     where x.state = 'not_converted' and x.sent_at >= (select collect.clock() - interval '30 days')
       and not coalesce(i.is_there, false)
       and coalesce(i.asked_at, '-infinity') < (select collect.clock()) - greatest((i.asked_at - x.sent_at) / 4, interval '10 minutes')
       and x.accession not in (select split_part(p.key, '/', 1) from collect.pending p where p.stream = 'sec.xbrl_facts');
comment on view filings.sec_due_xbrl is
    'Filings of the last thirty days whose submission was read and whose XBRL was not, and instances that EDGAR had not made yet: '
    'asked for again after ten minutes, then less and less often';

create view filings.sec_xbrl_states as
    with broken as (select distinct split_part(q.unit, '/', 1) as accession from collect.quarantine q
                     where q.stream = 'sec.xbrl_facts' and q.scope = 'unit' and q.state = 'open'),
         held as (select distinct i.accession from filings.sec_xbrl_instances i)
    select coalesce(x.accession, b.accession) as accession, x.filed_date,
           case when b.accession is not null then 'broken' when h.accession is not null then 'facts' else x.state end as state
      from filings.sec_xbrl x
      full join broken b on b.accession = x.accession
      left join held h on h.accession = x.accession;
comment on view filings.sec_xbrl_states is
    'How the XBRL of each filing stands: facts, none (it has no XBRL), not_converted (EDGAR has not made the instance yet) or broken '
    '(it is in quarantine)';

create view filings.sec_header_label_counts as
    select f.label, f.meaning, f.spelling, count(*) as times, min(f.filed_date) as first_filed, max(f.filed_date) as last_filed
      from filings.sec_header_fields f
     where f.spelling <> 'usual'
     group by f.label, f.meaning, f.spelling;
comment on view filings.sec_header_label_counts is 'How often labels were seen that are renamed, misspelt or unknown, and when';
