"""What claiming and settling costs is printed; that each unit of work is taken once and ended is asserted."""

from __future__ import annotations

import pytest

from include.local.postgres import Cluster


@pytest.mark.benchmark
def test_each_unit_is_taken_once_and_what_claiming_and_settling_costs_is_printed(
    postgres: Cluster, database: str
) -> None:
    # The two queues it is measured against are installed by `./run bench` alone.
    from tests.benchmarks import claims

    with claims.prepared(postgres, database) as bench:
        for workers in (1, 4, 16, 32):
            print("\n" + "\n".join(claims.measure(bench, workers, 2_000, 5)), flush=True)
