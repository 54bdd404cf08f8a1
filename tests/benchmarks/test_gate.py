"""What the gate costs a state write is printed; that every write was made is asserted."""

from __future__ import annotations

import pytest

from tests.benchmarks import gate
from tests.engine.seoul import Seoul


@pytest.mark.benchmark
def test_state_writes_with_and_without_the_gate_are_all_made_and_their_rates_are_printed(database: str) -> None:
    writes, rounds = 4_000, 9
    print("\n" + "\n".join(gate.measure(database, writes, rounds)), flush=True)
    here = Seoul(database)
    counted = here.one("select sum(fetched_count) as n from collect.cycles")["n"]
    here.close()
    assert counted == sum(len(gate.KINDS) * (rounds + 1) * n * (writes // n) for n in gate.WRITERS)
