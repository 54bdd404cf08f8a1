"""The verbs that look at what is there, and change what an operator decides: controls and calendars.

Promises: everything shown comes from rows; a decision is kept with who and why. Never: nothing is collected here.
"""

from __future__ import annotations

import argparse
import sys
from datetime import timedelta
from typing import Any, Literal

from include import calendars, registry
from include.collecting import CommandRefused, chosen, is_connected, warehouse
from include.engine import alerts, controls, incidents, jobs, kinds, quarantine, silences, snapshot, windows
from include.engine.db import Row, query, transaction
from include.engine.verdict import kst


def _rows(name: str, **values: Any) -> list[Row]:
    with transaction(warehouse(), application="daybook cli") as connection:
        return connection.execute(query(name), values or None).fetchall()


def status(options: argparse.Namespace) -> int:
    """Show the newest window of every stream, or why it is out of service."""
    for row in _rows("status.streams"):
        if not row["active"]:
            print(f"{row['stream']:<24} NOT IN SERVICE   {row['service_why']}")
            continue
        print(
            f"{row['stream']:<24} {row['cycle_status'] or 'no window yet':<16} window {kst(row['window_start'])}"
            f"  session {row['session_date'] or '–'}  checkpoint {row['checkpoint'] or '–'}"
            f"  pending {row['pending']}  quarantine {row['quarantined']}"
        )
        if row["failure_reason"]:
            print(f"    {row['failure_reason']}: {row['failure_cause_summary']}")
    return 0


def runs(options: argparse.Namespace) -> int:
    """Show the newest job runs, or all there is to know of one."""
    url = warehouse()
    if options.run_id:
        return _run(url, options.run_id)
    for row in _rows("status.runs", limit=options.limit):
        progress = jobs.progress(url, row["run_id"])
        print(f"{row['outcome'] or 'unfinished'!s:<18} {row['run_id']}  {progress.words}  by {row['requested_by']}")
    return 0


def _run(url: str, run_id: str) -> int:
    found = _rows("jobs.find", run_id=run_id)
    if not found:
        raise CommandRefused(f"There is no run {run_id}; `runs` shows the newest.")
    (row,) = found
    days = f"{row['range_start'] or 'newest'} to {row['range_end'] or 'newest'}"
    keys = ", ".join(row["keys"]) or "all keys"
    print(f"{str(row['outcome'] or 'unfinished').upper()} – {row['mode']} {run_id}, asked for by {row['requested_by']}")
    print(f"    {days}, {keys}, at {kst(row['created_at'])}")
    if row["reason"]:
        print(f"    why: {row['reason']}")
    if row["reopened_count"]:
        print(f"    opened again {row['reopened_count']} times, last by {row['reopened_by']}")
    for stream in row["streams"]:
        state = jobs.progress(url, run_id, stream)
        rows = f"{state.rows_new:,} new, {state.rows_changed:,} changed, {state.rows_withdrawn:,} withdrawn"
        print(f"    {stream}: {state.words}; {state.rows_read:,} rows read, {rows}")
        if state.last_good:
            print(f"        last done {state.last_good.rpartition('/')[2]}")
        if state.first_failure:
            print(f"        first failure {state.first_failure}")
    return 0


def pending(options: argparse.Namespace) -> int:
    """Show keys that are still to be fetched, or fetched again."""
    names = [stream.name for stream in chosen(options)]
    rows = _rows("status.pending", streams=names, rechecks=options.rechecks, limit=options.limit)
    for row in rows:
        state = f"given up {kst(row['given_up_at'])}" if row["given_up_at"] else f"next {kst(row['next_try_at'])}"
        error = f"  {row['last_error']}" if row["last_error"] else ""
        print(f"{row['stream']}  {row['key']:<24} {row['why']:<14} tries {row['attempts']:>3}  {state}{error}")
    if not rows:
        print("NOTHING – no key is pending")
    return 0


def quarantined(options: argparse.Namespace) -> int:
    """Show entries of quarantine, newest first."""
    rows = quarantine.entries(warehouse(), options.stream, options.state)
    for row in rows:
        place = f"{row['stream']}  {row['unit']}  {row['position'] or 'unit'}"
        print(f"{row['quarantine_id']:>6}  {place}: {row['reason']}")
        if row["resolved_by"]:
            print(f"        {row['state']} by {row['resolved_by']} at {kst(row['resolved_at'])}: {row['resolved_why']}")
    if not rows:
        print(f"NOTHING – no entry is {options.state}")
    elif options.state == "open":
        print("Let one out with: quarantine retry|accept|drop NUMBER --why TEXT")
    return 0


def calendar(options: argparse.Namespace) -> int:
    """Show calendar exceptions, or decide one."""
    if options.action == "list":
        for row in _rows("calendar.list"):
            print(f"{row['calendar']}  {row['day']}  {row['state']:<9} {row['reason']}  {row['decided_by'] or ''}")
        return 0
    calendars.calendar(options.calendar)
    if options.day is None or not options.why:
        raise CommandRefused("Name the day, and say --why: both are kept, and shown to whoever looks next.")
    states: dict[str, Literal["open", "closed", "rejected"]] = {"close": "closed", "open": "open", "reject": "rejected"}
    state = states[options.action]
    windows.decide(warehouse(), options.calendar, options.day, state, who=options.who, why=options.why)
    print(f"DONE – {options.calendar} {options.day} is {state}")
    return 0


def held(options: argparse.Namespace) -> int:
    """Show what is frozen, drained or switched off, or change it."""
    url = warehouse()
    windows.declare(url, registry.streams(), is_connected)
    if options.action == "list":
        rows = controls.listed(url)
        print("\n".join(controls.describe(row) for row in rows) or "NOTHING – nothing is frozen or set")
        return 0
    scopes: tuple[controls.Scope, ...] = ("source", "stream", "job")
    named = [(scope, str(getattr(options, scope))) for scope in scopes if getattr(options, scope)]
    if len(named) + options.all + options.dispatch != 1:
        print("REFUSED – say one thing: --all, --source, --stream, --job or --dispatch", file=sys.stderr)
        return 2
    others: tuple[controls.Scope, str] = ("dispatch" if options.dispatch else "all", "")
    scope, name = named[0] if named else others
    print(controls.apply(url, controls.Change(options.action, scope, name, options.who, options.why)).words)
    return 0


def wrong(options: argparse.Namespace) -> int:
    """Show what is wrong and lasts, the worst first."""
    url = warehouse()
    since = snapshot.next_cutoff(url)[0] - timedelta(days=7) if options.over else None
    rows = incidents.listed(url, since)
    for row in rows:
        state = row["severity"].upper() if row["closed_at"] is None else f"OVER since {kst(row['closed_at'])}"
        issue = f"  {row['issue_url']}" if row["issue_url"] else ""
        text = row["closed_text"] or row["text"]
        print(f"{state} – {row['incident_key']}, since {kst(row['opened_at'])}: {text}{issue}")
        if row["closed_at"] is None and (page := kinds.page_of(row["incident_key"])):
            print(f"        What to do: {page}")
    if not rows:
        print("NOTHING – no incident is open")
    return 0


def aside(options: argparse.Namespace) -> int:
    """Show the messages that Slack refused for good, have one tried again, or drop it."""
    url = warehouse()
    if options.action == "list":
        rows = alerts.put_aside(url)
        for row in rows:
            told = f"{row['severity']} of {kst(row['created_at'])}, {row['alert_key']}: {row['text']}"
            print(f"{row['alert_id']:>6}  refused at {kst(row['refused_at'])}: {row['refused_why']}\n        {told}")
        print("Then: alerts retry|drop NUMBER --why TEXT" if rows else "NOTHING – Slack has refused none for good")
        return 0
    if options.action == "retry":
        row = alerts.try_again(url, options.id, options.who, options.why)
        print(f"DONE – alert {row['alert_id']} ({row['alert_key']}) waits again and is sent next")
        return 0
    row = alerts.drop(url, options.id, options.who, options.why)
    print(f"DONE – alert {row['alert_id']} ({row['alert_key']}) is not sent any more; it is kept")
    return 0


def quiet(options: argparse.Namespace) -> int:
    """Show the silences that hold, make one, or lift one."""
    url = warehouse()
    if options.action == "list":
        for row in silences.listed(url):
            until, made = kst(row["ends_at"]), f"by {row['made_by']}: {row['reason']}"
            print(f"{row['silence_id']:>6}  {row['pattern']}  until {until} {made} ({row['kept_back']} kept back)")
        return 0
    if options.action == "lift":
        if not options.what.isdigit():
            raise CommandRefused("Name the silence by its number, as `silences list` shows it.")
        row = silences.lift(url, int(options.what), options.who, options.why)
        print(f"DONE – silence {row['silence_id']} of {row['pattern']} is lifted; what comes from now on is sent")
        return 0
    if options.until is None:
        raise CommandRefused("Say --until when, e.g. 2026-09-16T12:00+09:00: a silence always ends.")
    row = silences.make(url, options.what, options.until, options.who, options.why)
    print(f"DONE – alerts {row['pattern']} are not sent until {kst(row['ends_at'])} (silence {row['silence_id']})")
    return 0


def verdict(options: argparse.Namespace) -> int:
    """Show the 09:00 snapshot of a date in Seoul."""
    url = warehouse()
    found = snapshot.read(url, options.day or snapshot.next_cutoff(url)[0].date())
    print(found.words)
    for item in found.items or ():
        print(
            f"{item.stream:<24} {item.cycle_status:<16} window {kst(item.window_start)}  session "
            f"{item.session_date or '–'}  rows {item.fetched_count:,}"
            f"{'  ABNORMAL' if item.abnormal else ''}{'  FROZEN' if item.frozen else ''}"
        )
    return 0
