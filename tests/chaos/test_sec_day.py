"""A whole day of the SEC through every stream of its chain, from the first tick to the last, with all that goes wrong.

Amendments are accepted before their originals, a third of the filings after hours, texts and instances come late, a
throttle page stands in the middle, and a row vanishes from the quarter's index: afterwards every filing that the index
lists is held with its documents, header and facts, and was asked for once.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest

from include.contract import CycleStatus
from include.sandbox import sec_filings
from tests.fixtures_sandbox import Start
from tests.sources.conftest import place  # noqa: F401
from tests.sources.places import Place
from tests.sources.test_sec import FRIDAY, MONDAY, THURSDAY, TUESDAY, WEDNESDAY, Desk, at
from tests.sources.test_sec_filings import CHAIN

pytestmark = pytest.mark.chaos


@pytest.mark.parametrize("filings", [600, 6_000])
def test_a_day_is_held_whole_whatever_happens_on_it(
    place: Callable[[], Place],  # noqa: F811
    sandbox: Start,
    filings: int,
) -> None:
    made = place()
    made.at(at(TUESDAY, 6))
    running = sandbox(clock=made.now, companies=max(filings // 4, 40))
    made.sandbox_url = running.url
    here = Desk(made, running)
    here.switch("filings", a_day=filings)
    late = [each for each in here.sec.market.of_day(TUESDAY) if each.form == "8-K" and each.accepted.hour < 12][:5]
    for filing in late:
        here.switch("late", accession=filing.accession, until=at(TUESDAY, 15).isoformat())

    stops: list[tuple[str, datetime]] = []
    instant, throttled = at(TUESDAY, 6, 0, 20), at(TUESDAY, 12, 0, 20)
    while instant <= at(WEDNESDAY, 8, 0, 20):
        if instant == throttled:
            running.fault(match={"kind": "text"}, html_block_page=True, n=1)
        for name in CHAIN:
            verdict = here.poll(name, max(instant, made.now()))
            if verdict is not None and verdict.status is not CycleStatus.SUCCESS:
                stops.append((name, instant))
        instant += timedelta(minutes=15) if instant < at(TUESDAY, 22) else timedelta(hours=2)
    # The page stops what asks the SEC for eleven minutes, which is once; facts ask for instances that came late. What
    # only reads goes on.
    assert ("sec.filings", throttled) in stops
    assert set(stops) <= {("sec.filings", throttled), ("sec.xbrl_facts", throttled)}

    for day, stream in ((TUESDAY, "sec.index"), (WEDNESDAY, "sec.index")):
        here.poll(stream, at(day, 23, 45))
    # What the feed never showed is known from the index, and collected in the next morning's windows.
    for name in CHAIN:
        here.poll(name, at(THURSDAY, 6, 0, 20))
    here.poll("sec.quarters", at(FRIDAY + timedelta(days=1), 12, 0, 20))
    listed = {each.accession: each for each in here.sec.of_index(TUESDAY)}
    gone = next(each for each in listed.values() if each.form == "8-K")
    here.switch("withdraw", accession=gone.accession, at=at(MONDAY, 12).isoformat())
    here.poll("sec.quarters", at(FRIDAY + timedelta(days=8), 12, 0, 20))
    flagged = made.sql("select accession from filings.sec_accessions where is_withdrawn")
    assert [row["accession"] for row in flagged] == [gone.accession]

    assert len(listed) >= filings * 0.8
    texts = here.accessions("sec_texts")
    assert set(listed) <= texts
    assert here.accessions("sec_headers") >= set(listed)
    assert here.accessions("sec_xbrl") >= set(listed)
    states = {row["accession"]: row["state"] for row in made.sql("select * from filings.sec_xbrl_states")}
    with_facts = {each.accession for each in listed.values() if each.form in sec_filings._WITH_FACTS}
    assert {states[accession] for accession in with_facts} == {"facts"}
    asked = made.sql(
        "select unit, count(*) as n from collect.fetches where stream = 'sec.filings' and answer_class = 'data'"
        " group by unit having count(*) > 1"
    )
    assert asked == []
    after_hours = [each for each in here.sec.market.of_day(TUESDAY) if each.accepted > at(TUESDAY, 17, 30)]
    amended = [each for each in listed.values() if each.form == "10-K/A"]
    assert after_hours
    assert amended
    # Of what the feed showed, each filing was found by the next tick, but for those that the throttle page put off.
    waited = made.sql(
        "select max(seen_at - accepted_at) as longest from filings.sec_feed where accepted_at between %s and %s",
        at(TUESDAY, 6, 15),
        at(TUESDAY, 21, 59),
    )[0]["longest"]
    assert waited <= timedelta(minutes=18)
    print(f"{len(texts):,} texts, {here.asked():,} requests, found after {waited} at most")
