"""Measures what the gate costs: state writes a second with it, without it, and with a lock on the header's row instead.

    ./run bench -k gate
    python tests/benchmarks/gate.py [--writes 4000] [--rounds 9]

Promises: a state write is `collect.settle` of a scheduled poll in a transaction of its own, made and committed within
the server, so that no client is measured; the other two are the very same function with the gate's call replaced. All
three are run in turn by one writer and by sixteen, each for a window of its own, and a ratio is taken within its round.
Never: a time fails a test.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from concurrent.futures import ThreadPoolExecutor

from include.engine.db import Connection, connect
from tests.benchmarks.measuring import Judged, judge, summary, warehouse
from tests.engine.races import Arena

AIM = 0.85
WRITERS = (1, 16)
KINDS = ("gate", "none", "row")
CALL = "collect.gate_for(v.mode, v.run_id, v.lease_owner)"
# What a write calls in the gate's place.
INSTEAD = {"none": "collect.clock()", "row": "public.row_gate()"}

ROW_GATE = """
    create function public.row_gate() returns timestamptz language plpgsql volatile as $$
    begin
        perform 1 from collect.sla_snapshots s where s.capture_status = 'PENDING' for update;
        return collect.clock();
    end $$
"""
WRITES = """
    create procedure public.writes_{kind}(p_cycle bigint, p_token uuid, p_count integer) language plpgsql as $$
    begin
        for n in 1 .. p_count loop
            perform {function}(p_cycle, p_token, 'RUNNING', '{{"fetched": 1}}');
            commit;
        end loop;
    end $$
"""


def prepare(connection: Connection) -> None:
    """Make the two other forms of the function, and a procedure of each that writes and commits again and again."""
    run: Any = connection.execute
    row = run("select pg_get_functiondef('collect.settle(bigint, uuid, text, jsonb)'::regprocedure) as text").fetchone()
    assert CALL in row["text"], "settle passes the gate in another way now; this measure must follow"
    run(ROW_GATE)
    for kind in KINDS:
        function = "collect.settle"
        if kind in INSTEAD:
            function = f"public.settle_{kind}"
            run(row["text"].replace("collect.settle(", f"{function}(", 1).replace(CALL, INSTEAD[kind]))
        run(WRITES.format(kind=kind, function=function))


def rate(connections: Sequence[Connection], leases: Sequence[tuple[int, Any]], kind: str, writes: int) -> float:
    """Let every writer write so often; the writes a second of all together."""
    call: Any = f"call public.writes_{kind}(%s, %s, %s)"

    def work(n: int) -> None:
        connections[n].execute(call, (*leases[n], writes))

    begun = time.perf_counter()
    with ThreadPoolExecutor(len(connections)) as pool:
        list(pool.map(work, range(len(connections))))
    return len(connections) * writes / (time.perf_counter() - begun)


def measure(url: str, writes: int, rounds: int) -> list[str]:
    """Measure every kind by one writer and by sixteen; the lines to print."""
    arena = Arena(url, max(WRITERS)).open()
    # The cutoff is a day ahead: what is measured is the gate as it is all day long.
    arena.prepare(86_000)
    leases = [arena.seoul.leases[each.name] for each in arena.streams]
    connections = [connect(url, autocommit=True, statement_timeout=600) for _ in leases]
    lines = []
    try:
        prepare(connections[0])
        for writers in WRITERS:
            rates: dict[str, list[float]] = {kind: [] for kind in KINDS}
            # The first round warms up and is not counted.
            for number in range(rounds + 1):
                turn = number % len(KINDS)
                for kind in [*KINDS[turn:], *KINDS[:turn]]:
                    found = rate(connections[:writers], leases, kind, max(1, writes // writers))
                    if number:
                        rates[kind].append(found)
            medians = ", ".join(f"{kind} {statistics.median(rates[kind]):,.0f}" for kind in KINDS)
            lines.append(f"{writers} writers, writes a second: {medians}")
            for kind, aim in (("gate", AIM), ("row", None)):
                shares = tuple(one / free for one, free in zip(rates[kind], rates["none"], strict=True))
                lines.append(judge(Judged(f"state writes, {writers} writers: {kind} / none", shares, aim=aim)))
        row = arena.seoul.one("select sum(fetched_count) as n from collect.cycles")
        lines.append(f"{row['n']:,} writes were counted by the windows themselves")
    finally:
        for connection in connections:
            connection.close()
        arena.close()
    return lines


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="What the gate costs a state write.")
    parser.add_argument("--writes", type=int, default=4_000, help="writes of all writers together, a kind and round")
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    with warehouse() as (_, url):
        print("\n".join(measure(url, options.writes, options.rounds)), flush=True)
    print("\n".join(["", *summary()]))


if __name__ == "__main__":
    main()
