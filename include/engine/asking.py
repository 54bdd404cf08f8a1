"""Asking for everything that is planned, within the budgets of the slice and of the day.

Promises: all pages of a unit or none are applied; a slice that used its share goes on where it ended, also in the
middle of a unit; what is left out for a limit is counted, and what another kind of budget allows is still asked for.
Items are counted as they were read: where a guess from the bytes reaches a limit, what waits is applied first. Never:
no state is written here.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING

from include.contract import AnswerClass, BudgetReason, Request
from include.engine import apply as applying
from include.engine import fetch, fetches, frontier, hosts, stage, windows
from include.engine.closing import Ending
from include.engine.slices import Open, Slice

if TYPE_CHECKING:
    from include.engine.cycle import Worker

CONCLUSIVE = frozenset({AnswerClass.DATA, AnswerClass.EMPTY, AnswerClass.UNCHANGED, AnswerClass.ABSENT})


def ask_all(worker: Worker, asker: fetch.Asker, part: Slice, apply_now: Callable[[], None]) -> Ending:
    """Ask for everything planned that this cycle has no last word on, and say how it ended."""
    queue = deque(part.plan.requests)
    try:
        while queue:
            request = queue.popleft()
            if is_answered(part, request):
                continue
            if worker.stop():
                return Ending("stopped")
            if (over := _items_over(part, apply_now)) is not None:
                return over
            if (limit := _day_limit(part, request)) is not None:
                part.limit = part.limit or limit
                continue
            if (used := _slice_limit(part, request)) is not None:
                return Ending("more", used)
            found = _ask_unit(worker, asker, part, request)
            _put_in(queue, asker.line.kept(partial(frontier.plan_found, part=part, found=found)))
            if request.key in part.open:
                following = part.open[request.key].todo[0]
                used = _slice_limit(part, following)
                if used is not None and _day_limit(part, following) is None:
                    return Ending("more", used)
                continue
            if part.errors.get(request.key, "").startswith("refused: "):
                return Ending("refused", part.errors[request.key].removeprefix("refused: "))
            if part.answers[request.key] is AnswerClass.BLOCKED:
                return Ending("refused", part.errors[request.key])
            if (trouble := _missing_in_a_row(asker, part, request)) is not None:
                return trouble
            if (failing := _failing_in_a_row(part, request)) is not None:
                until = asker.line.kept(windows.now) + part.stream.schedule.retry_every
                return Ending("blocked", failing, until)
            if part.waiting >= stage.MOST_ROWS:
                apply_now()
                worker.signal("applied")
    except (hosts.Stopped, applying.Interrupted):
        return Ending("stopped")
    except hosts.Blocked as blocked:
        return Ending("blocked", str(blocked), blocked.until)
    except hosts.UsedUp as used_up:
        return Ending("quota", str(used_up), used_up.until)
    except OSError as error:
        return no_storage(error)
    return Ending("done") if part.limit is None else Ending("budget", part.limit)


def no_storage(error: OSError) -> Ending:
    """How a slice ends that cannot keep or read answers."""
    return Ending("storage", f"the raw store cannot be written or read: {error}")


def is_answered(part: Slice, request: Request) -> bool:
    """Say whether asking again in this cycle is of no use.

    A window asks once for what failed after the retries and for an older session that is still missing: only its
    own session is worth a try every half hour.
    """
    answer_class = part.answers.get(request.key)
    if answer_class is None or not part.is_window:
        return answer_class in CONCLUSIVE
    if answer_class is AnswerClass.NOT_YET:
        return request.session_date != part.cycle.session_date
    return answer_class in CONCLUSIVE or answer_class is AnswerClass.ERROR


def _items_over(part: Slice, apply_now: Callable[[], None]) -> Ending | None:
    """Say how the slice ends where the day's or its own items are used up; chunks have no day."""
    budget = part.stream.budget
    day = budget.day_items - part.spent.items if part.is_window else None
    least = budget.slice_items if day is None else min(day, budget.slice_items)
    if part.waiting and part.items + part.waiting >= least:
        apply_now()
    if day is not None and part.items >= day:
        part.limit = part.limit or BudgetReason.ITEM_LIMIT
        return Ending("budget", part.limit)
    return Ending("more", BudgetReason.ITEM_LIMIT) if part.items >= budget.slice_items else None


def _day_limit(part: Slice, request: Request) -> BudgetReason | None:
    """Return which of the day's budgets the next request of a kind would overstep; chunks have none."""
    budget, spent = part.stream.budget, part.spent
    if not part.is_window:
        return None
    if request.kind == "list" and spent.list_pages + part.list_pages >= budget.day_list_pages:
        return BudgetReason.LIST_PAGE_LIMIT
    if request.kind == "detail" and spent.details + part.details >= budget.day_details:
        return BudgetReason.DETAIL_LIMIT
    return None


def _missing_in_a_row(asker: fetch.Asker, part: Slice, request: Request) -> Ending | None:
    """Say that access is in trouble where too much is missing, one after the other, that the upstream has named itself.

    None of it counts as missing then: the keys stay pending.
    """
    group = part.stream.host_group
    if not group.most_absent or not request.is_known:
        return None
    if part.answers[request.key] not in (AnswerClass.ABSENT, AnswerClass.NOT_YET):
        part.absent.clear()
        return None
    part.absent.append(request.key)
    if len(part.absent) < group.most_absent:
        return None
    why = f"{len(part.absent)} things that it has named itself are missing one after the other, last {request.key}."
    fetch.stop_group(asker, why)
    for key in part.absent:
        part.answers[key] = AnswerClass.ERROR
        part.errors[key] = "missing together with many others, which is a trouble of access"
    return Ending("refused", f"{group.name}: {why} That is a trouble of access; nothing is taken for missing.")


def _put_in(queue: deque[Request], found: Iterable[Request]) -> None:
    """Put what answers led to behind what is planned, but before what is of older sessions."""
    for request in found:
        place = len(queue)
        while place and _is_older(queue[place - 1], request):
            place -= 1
        queue.insert(place, request)


def _is_older(one: Request, other: Request) -> bool:
    return bool(one.session_date and other.session_date and one.session_date < other.session_date)


def _failing_in_a_row(part: Slice, request: Request) -> str | None:
    """Say that everything fails, and not one thing: so many answers one after the other, from as many addresses."""
    most = part.stream.gives_way_after
    if not most:
        return None
    if part.answers[request.key] is not AnswerClass.ERROR:
        part.failing.clear()
        return None
    part.failing.append(request.url)
    addresses = {each.url for each in part.plan.requests}
    if len(part.failing) < most or len(set(part.failing)) < min(most, len(addresses)):
        return None
    return f"{len(part.failing)} answers failed one after the other, last {part.errors[request.key]}"


def _slice_limit(part: Slice, request: Request) -> BudgetReason | None:
    """Return which of the slice's budgets is used up before a request."""
    budget = part.stream.budget
    if time.monotonic() - part.started > budget.slice_seconds:
        return BudgetReason.SLICE_TIME_LIMIT
    if request.kind == "list" and part.list_pages >= budget.slice_list_pages:
        return BudgetReason.LIST_PAGE_LIMIT
    return None


def _ask_unit(worker: Worker, asker: fetch.Asker, part: Slice, first: Request) -> list[Request]:
    """Ask for the pages of a unit, from where it stands; return what else they led to.

    Ends with an answer, or with the unit still open where the slice or the day allows no further page.
    """
    stands = part.open.pop(first.key, None)
    head, page, todo = (stands.head, stands.page, [*stands.todo]) if stands else (None, 0, [first])
    found: list[Request] = []
    cursor, answer_class, left_out = part.cursor, AnswerClass.ERROR, set[str]()
    while todo:
        request = todo[0]
        if head is not None and page and (limit := _day_limit(part, request)) is not None:
            part.limit = part.limit or limit
            part.open[first.key] = Open(head, page, tuple(todo))
            return found
        # The plan knows nothing of what was left out: cut in the middle, the unit would begin anew.
        may_be_cut = not left_out and not (stands and page == stands.page)
        if head is not None and page and may_be_cut and _slice_limit(part, request) is not None:
            part.open[first.key] = Open(head, page, tuple(todo))
            return found
        try:
            fetched = fetch.ask(asker, request, page, head, is_awaited=len(todo) > 1, left_out=left_out)
        except (hosts.Stopped, hosts.Blocked, hosts.UsedUp):
            if head is not None and page:
                part.open[first.key] = Open(head, page, tuple(todo))
            raise
        todo.pop(0)
        if request.kind == "list":
            part.list_pages += 1
        else:
            part.details += 1

        worker.signal("stored")
        if fetched.amended is not None:
            left_out.add(fetched.amended.key)
            todo = [fetched.amended.request]
            continue
        head = head or fetched.fetch_id
        page += 1
        answer_class = fetched.answer_class
        if fetched.refusal:
            part.errors[first.key] = f"refused: {fetched.refusal}"
            break
        if answer_class not in frontier.READ:
            part.errors[first.key] = fetched.error or str(answer_class)
            break
        todo.extend(fetched.more)
        found.extend(fetched.found)
        cursor = fetched.cursor or cursor
    part.answers[first.key] = answer_class
    if answer_class in frontier.READ and head is not None:
        known = head
        held = asker.line.kept(lambda connection: fetches.load(connection, asker.raw, known))
        part.to_apply.append(held)
        part.cursor = cursor
        # Bytes of a line are a fair guess of rows, and cost no parse here.
        part.waiting += held.size // applying.FEWEST_BYTES
    return found
