"""Every step of two workers and two poll loops against every step of the others: nothing twice, nothing lost."""

from __future__ import annotations

import itertools

import pytest

from include.analysis import polling
from tests.analysis.interleaving import Theatre
from tests.analysis.office import Office


def played(office: Office, seed: int, steps: int, patch: pytest.MonkeyPatch, *, own_ids: bool = True) -> None:
    # One look after the other, so that the order is the seed's alone.
    patch.setattr(polling, "AT_ONCE", 1)
    office.switch("takes_names", **{"is": own_ids})
    theatre = Theatre(office, seed, own_ids)
    try:
        theatre.play(4, steps)
    finally:
        theatre.close()


@pytest.mark.parametrize("seed", [1])
def test_in_whatever_order_they_go_nothing_is_given_to_the_model_twice_and_nothing_is_lost(
    office: Office, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    played(office, seed, 60, monkeypatch)


def test_every_order_of_a_submit_and_a_look_at_its_name_gives_it_to_the_model_once(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(polling, "AT_ONCE", 1)
    theatre = Theatre(office, 0)
    try:
        # Three steps of the worker among six turns.
        for n, places in enumerate(itertools.combinations(range(6), 3)):
            theatre.said.clear()
            turns = ["worker 1" if place in places else "loop 1" for place in range(6)]
            theatre.in_order(office.file(n), turns)
    finally:
        theatre.close()


@pytest.mark.chaos
@pytest.mark.parametrize("seed", range(1_000, 1_060))
@pytest.mark.parametrize("own_ids", [True, False])
def test_in_many_orders_nothing_is_given_to_the_model_twice_and_nothing_is_lost(
    office: Office, seed: int, own_ids: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    played(office, seed, 120, monkeypatch, own_ids=own_ids)
