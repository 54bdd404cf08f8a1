"""A worker of EDGAR's bulk file as a process of its own, to be killed: members that are due, then their files."""

from __future__ import annotations

import sys
from dataclasses import replace
from datetime import timedelta

from include.contract import HostGroup, Mode, Stream
from include.engine import cycle, windows
from include.engine.raw import RawStore
from include.sources.edgar.streams import COMPANYFACTS_STREAM, FACTS_STREAM
from tests.sources.places import Place


def streams(companies_a_part: int) -> tuple[Stream, Stream]:
    """The two streams without a pace, and parts so small that there are many of them."""
    making = FACTS_STREAM.making
    assert making is not None
    free = HostGroup("sec", timedelta(0))
    return (
        replace(COMPANYFACTS_STREAM, host_group=free),
        replace(FACTS_STREAM, host_group=free, making=replace(making, part_units=companies_a_part)),
    )


def main() -> None:
    """Work what is due: warehouse, raw store, sandbox and companies a part come as arguments."""
    url, raw, sandbox, companies_a_part = sys.argv[1:]
    place = Place(url, RawStore(raw), sandbox)
    for stream in streams(int(companies_a_part)):
        windows.declare(url, (stream,))
        windows.open_due(url, stream)
        worker = replace(place.worker(stream), nap=lambda seconds: None)
        while (verdict := cycle.work(worker, stream, Mode.POLL, None)) is not None:
            if verdict.next_eligible_at is not None:
                break


if __name__ == "__main__":
    main()
