"""Ports: the usual one or another, always on loopback."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from include.local import ports


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.socket() as server:
        server.bind((ports.LOOPBACK, 0))
        server.listen()
        yield server.getsockname()[1]


def test_a_taken_port_is_not_free_and_another_is_chosen(taken: int) -> None:
    assert not ports.is_free(taken)
    assert ports.choose(taken) != taken


def test_a_free_port_is_kept() -> None:
    port = ports.any_free()
    assert ports.choose(port) == port


def test_a_port_that_is_promised_already_is_not_given_twice() -> None:
    port = ports.any_free()
    assert ports.choose(port, avoid=(port,)) != port


def test_a_port_that_does_not_exist_is_not_free() -> None:
    assert not ports.is_free(70_000)
