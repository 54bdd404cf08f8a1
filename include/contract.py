"""The words that a source, the engine and the outputs share, as frozen data.

Promises: everything here is immutable, comes from the standard library alone and does nothing by itself.
A source describes itself in these words; the engine works from the description and knows no source by name.
Never: no input or output, no clock, no database, no Airflow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, Literal

from include.bulk import Archive as Archive
from include.bulk import Body as Body
from include.bulk import Gathering as Gathering
from include.bulk import Made as Made
from include.bulk import Making as Making
from include.reach import Credentials as Credentials
from include.reach import Key as Key
from include.reach import Quota as Quota
from include.reach import QuotaUsedUp as QuotaUsedUp
from include.refusals import AnswerError as AnswerError
from include.refusals import DefiniteRefusal as DefiniteRefusal
from include.refusals import ParseError as ParseError
from include.shapes import Column as Column
from include.shapes import Rejected as Rejected
from include.shapes import Rule as Rule
from include.shapes import SqlType as SqlType
from include.shapes import Table as Table
from include.shapes import Usual as Usual
from include.states import TERMINAL as TERMINAL
from include.states import AnswerClass as AnswerClass
from include.states import BudgetReason as BudgetReason
from include.states import CycleStatus as CycleStatus
from include.states import Mode as Mode
from include.states import Outcome as Outcome
from include.states import PendingReason as PendingReason
from include.timing import Budget as Budget
from include.timing import HostGroup as HostGroup
from include.timing import Schedule as Schedule
from include.timing import Window as Window

# --- what a stream asks -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Request:
    """One request to an upstream.

    `key` names it for ever (stable, deterministic, without secrets); `unit` names the logical request whose
    pages or files belong together, and begins with the key that an operator would name, then a slash. `url`
    is absolute, on one of the source's hosts and free of secrets: the
    engine adds credentials when it sends. `session_date` is the day that the data belongs to, None where a
    request has none. `expected` says that the calendar expects data: then an absence means "not yet".
    `required` says that a poll is not complete without it. `kind` is what it costs: a list page or a detail. `since`
    is for `follow` alone and never sent: only what is newer than this day is wanted, everything where it is None.
    `about` is what its parser must know beside the answer (whom it asked for, by which choices): plain values that
    are kept with the fetch and given back with the answer whenever it is read again. `read_from` names a stream and one
    of its units: the first page of what is stored of it stands in for an answer, and nobody is asked. `is_known`: the
    upstream itself has named it: what is not there yet stays pending, though the poll may be complete without it, and
    many of them missing one after the other are a trouble of access. `archive` says that the answer is one, and how it
    is taken in. `awaits_change`: an answer that nothing changed is "not yet", as new data is expected.
    """

    key: str
    url: str
    unit: str
    session_date: date | None = None
    params: tuple[tuple[str, str], ...] = ()
    headers: tuple[tuple[str, str], ...] = ()
    method: Literal["GET", "POST"] = "GET"
    body: bytes | None = None
    expected: bool = True
    required: bool = True
    kind: Literal["list", "detail"] = "detail"
    since: date | None = None
    about: Mapping[str, Any] = field(default_factory=dict)
    read_from: tuple[str, str] | None = None
    is_known: bool = False
    archive: Archive | None = None
    awaits_change: bool = False


@dataclass(frozen=True)
class Answer:
    """One answer as stored: its request, HTTP status, headers in lower case, body and the instant it was sent.

    `tries` is how often it was asked for until this answer came, for `classify`: some upstreams say at the end of their
    data what others say in an outage.
    """

    request: Request
    status: int
    headers: Mapping[str, str]
    body: Body
    sent_at: datetime
    fetch_id: int = 0
    tries: int = 1


@dataclass(frozen=True)
class Unit:
    """All answers to one logical request, in order of asking."""

    key: str
    session_date: date | None
    answers: tuple[Answer, ...]


# --- what a stream gives ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Batch:
    """Rows for one table, each a tuple in the order of the table's columns, then its unknown columns or None."""

    table: Table
    rows: Iterable[tuple[Any, ...]]


@dataclass(frozen=True)
class Outdated:
    """Something had before that an answer shows to be out of date: it is asked for again under `key`.

    It counts as had where `unit` was asked for under a key that begins with one of `covers`, and as asked for again
    where that was after `since`.
    """

    key: str
    session_date: date
    unit: str
    covers: tuple[str, ...]
    since: datetime


@dataclass(frozen=True)
class Parsed:
    """What reading a unit gave: batches, the rows that could not be read, and columns nobody knew.

    Rows of a large unit come as a stream that is read once; then `rejected` and `unknown_columns` may be lists that
    grow while the rows are read, and a `ParseError` may come in the middle of them. `is_part` says
    that only a part of the unit was asked for, so that what is not there may be there all the same; `outdated` names
    what must be asked for again because of this answer.
    """

    batches: tuple[Batch, ...]
    rejected: Sequence[Rejected] = ()
    unknown_columns: Sequence[str] = ()
    is_part: bool = False
    outdated: Sequence[Outdated] = ()


# --- for what it is asked -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Ask:
    """What a stream is asked to plan: the session dates and keys for which something is wanted.

    `sessions` are the calendar's open days, newest first; `closed` are days that the calendar calls closed
    and that a backfill asks once all the same. `pending` are request keys whose time has come. `keys` limits
    the plan to what the operator named. `chunk` is what a chunk of the stream's own naming asks for. `newest` is
    the session that a window is responsible for, which it may read again although it was had. `checkpoint` is the
    session up to which everything is held or explained, None where a window is the first. `at` is when the plan is
    made, for upstreams that refuse what is too fresh. `subjects` are those of the stream's declaration, where it has
    one.
    """

    mode: Mode
    sessions: tuple[date, ...] = ()
    closed: tuple[date, ...] = ()
    pending: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    cursor: Mapping[str, Any] = field(default_factory=dict)
    chunk: Mapping[str, Any] = field(default_factory=dict)
    newest: date | None = None
    checkpoint: date | None = None
    at: datetime | None = None
    subjects: tuple[str, ...] = ()


@dataclass(frozen=True)
class Span:
    """The ground of a backfill or replay: session dates, both inclusive, and the keys that it is limited to.

    `today` is the upstream's own day at which the run is planned; the span never reaches past it. `subjects` are
    those of the stream's declaration, where it has one, `timeframe` the length of bars in place of the stream's own.
    `is_forced`: also what is held is wanted.
    """

    mode: Mode
    start: date
    end: date
    today: date
    keys: tuple[str, ...] = ()
    subjects: tuple[str, ...] = ()
    timeframe: str = ""
    is_forced: bool = False


@dataclass(frozen=True)
class Chunk:
    """One piece of a backfill or replay: worked, counted, failed and tried again by itself.

    `name` is unique within the stream's run and stable, in an operator's words (`2026-09-15`, `GDP/2024`,
    `2024-01/g003`). `session_date` is the newest session that it is for. `asks` are JSON values from which `plan`
    makes the requests (`Ask.chunk`); requests of one key in several chunks of a run are sent once. A replay reads
    again the units that the plan names or, where `asks` has `first` and `last`, those with answers for these days, of
    `keys` where it has some (`Stream.is_of`).
    More than one lease's work is cut into `parts`, each with what it asks in place of `asks`: each is worked under a
    lease of its own, and the whole is done when all of them are. A name has no `#` in it.
    """

    name: str
    session_date: date
    asks: Mapping[str, Any]
    parts: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True)
class Subjects:
    """What a stream asks about, held in a table of its own source: the column's values where the flag is true."""

    table: Table
    column: str
    flag: str


@dataclass(frozen=True)
class Amended:
    """A request without the part for which the upstream refused all of it.

    `key` is what a later plan asks for the part alone under; `reason` is what the upstream said of it.
    """

    request: Request
    key: str
    reason: str


@dataclass(frozen=True)
class Recheck:
    """What is read again after it was had: a session's keys in each of its next `sessions` windows."""

    sessions: int


def no_more(request: Request, answer: Answer) -> Sequence[Request]:
    """What follows an answer where nothing does."""
    return ()


def begins_with(unit: str, keys: Sequence[str]) -> bool:
    """Whether a unit is of one of some keys, as units are named: the key, then a slash."""
    return unit.partition("/")[0] in keys


@dataclass(frozen=True)
class Stream:
    """One data set of an upstream: frozen data plus pure functions.

    `plan(ask)` gives the requests (deterministic, finite, keys without secrets), `follow(request, answer)` the
    further pages, `classify(answer)` what an answer is, `parse(unit)` its rows. `parser_version` only grows.
    Requests of the same unit that `follow` gives are its pages; those of another unit, which only a list leads to, are
    asked for by themselves, and `plan` gives them again by their keys in `ask.pending`. Both are followed once more
    from what is stored, so `follow` looks at the answer and at what its request is planned with alone.
    `cursor_after(request, answer)` is what `ask.cursor` is from then on (JSON values): where a list goes on that a
    window could not read to its end.
    `says_newest(answer)` is of which subject an answer says what the upstream's newest is, and the day of that; None
    where its rows have to be read for it.
    `chunks(span)` names the pieces of a backfill or replay, newest first and the same each time; None: its days.
    `is_of(unit, keys)` says whether a replay of those keys reads a unit again.
    `usual_requests` is what one planned request comes to with its further pages, for estimates. `leaves_quota` is how
    many of each key's requests of a day it leaves to the other streams of its host group.
    `listing` says that a complete poll shows every open item, named by the key of the first table; one that
    `close_after` complete polls in a row did not show is closed. `least_share` is how much of what was believed last an
    answer must still show, or an operator accepts it; before that it misses no item and takes no row of a unit away. 0:
    every answer is believed, but for a listing under four fifths. `job` names the job of the source that works the
    stream, None for its main one; `dag` is for one that is known under another name. `subjects` says where the things
    that it asks about are held; `amend(request, answer)` gives a refused request again without the part that was at
    fault, None where nothing can be left out.
    `timeframes` says whether bars of a length other than its own can be had by a backfill; None: it has no bars.
    `lag_allowance`: its checkpoint may be so many sessions behind the last window that was due before that is told.
    `making` is for a stream that makes files of what another one holds; it has nothing to plan, classify or parse.
    `gives_way_after`: so many failures in a row, of as many addresses where so many are planned, let the cycle wait for
    its schedule's next try; 0: never. `usual_range(today)` bounds a backfill without dates.
    """

    name: str
    title: str
    tables: tuple[Table, ...]
    schedule: Schedule
    calendar: str
    host_group: HostGroup
    budget: Budget
    parser_version: int
    plan: Callable[[Ask], Iterable[Request]]
    classify: Callable[[Answer], AnswerClass]
    parse: Callable[[Unit], Parsed]
    first_session: date
    follow: Callable[[Request, Answer], Sequence[Request]] = no_more
    cursor_after: Callable[[Request, Answer], Mapping[str, Any] | None] = lambda request, answer: None
    says_newest: Callable[[Answer], tuple[str, date] | None] = lambda answer: None
    chunks: Callable[[Span], Iterator[Chunk]] | None = None
    is_of: Callable[[str, Sequence[str]], bool] = begins_with
    usual_requests: int = 1
    amend: Callable[[Request, Answer], Amended | None] = lambda request, answer: None
    subjects: Subjects | None = None
    timeframes: Callable[[str], bool] | None = None
    leaves_quota: int = 0
    gives_way_after: int = 0
    usual_range: Callable[[date], tuple[date, date]] | None = None
    recheck: Recheck | None = None
    listing: bool = False
    close_after: int = 3
    least_share: float = 0.0
    job: str | None = None
    dag: str | None = None
    empty_can_be_right: bool = True
    sla_eligible: bool = True
    lag_allowance: int = 2
    snapshot_only: str | None = None
    known_key: Callable[[str], bool] = lambda key: True
    keys_are: str = "keys"
    making: Making | None = None

    @property
    def follows(self) -> bool:
        """Whether its answers may lead to further requests."""
        return self.follow is not no_more

    @property
    def source(self) -> str:
        """The source that the stream belongs to: the part of its name before the point."""
        return self.name.partition(".")[0]

    @property
    def job_name(self) -> str:
        """The job that works it, as an operator names it: the source, `source_job`, or a name of its own."""
        return self.dag or (f"{self.source}_{self.job}" if self.job else self.source)


@dataclass(frozen=True)
class Source:
    """An upstream: its streams in the order in which they are worked, hosts, connection and terms.

    `key_param` names the query parameter that carries the connection's key, `key_header` the header; with
    `key_in_path` it stands in the address where a request has `{key}`. It is added when a request is sent.
    `several_keys` says that the connection may hold several, with commas between them.
    `login_header` names the header that carries the login beside it. `needs_contact`: nothing is asked unless the
    connection's user agent holds an e-mail address. `about` is what its DAGs' pages say of its tables and its past.
    `no_keys` are texts that stand for a key and are none of one's own, such as one for demonstrations.
    """

    name: str
    title: str
    connection: str
    hosts: tuple[str, ...]
    streams: tuple[Stream, ...]
    needs_key: bool
    terms: str
    user_agent: str = ""
    key_param: str = ""
    key_header: str = ""
    key_in_path: bool = False
    several_keys: bool = False
    login_header: str = ""
    needs_contact: bool = False
    about: str = ""
    no_keys: tuple[str, ...] = ()
