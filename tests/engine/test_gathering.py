"""A file that is gathered from others is put in its place by nobody but the holder of the part."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, BinaryIO

import pytest

from include.engine import gathering


def test_who_may_have_lost_the_part_while_joining_places_nothing_and_leaves_the_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs = [{"unit": str(n), "sha256": bytes([n]), "path": f"{n}", "size": 1, "source_fetch": n} for n in range(3)]
    state = gathering._State(inputs, {"made_sha256": None}, is_due=True)
    monkeypatch.setattr(gathering, "connect", lambda *given, **named: SimpleNamespace(close=lambda: None))
    monkeypatch.setattr(gathering, "_state", lambda *given: state)
    is_ours = [True]

    def piece(opened: Iterable[Any], target: BinaryIO) -> None:
        target.write(b"x")

    def join(pieces: Iterable[BinaryIO], target: BinaryIO) -> int:
        is_ours[0] = False
        return target.write(b"".join(each.read() for each in pieces))

    wanted = SimpleNamespace(unit="whole", batch=2, piece=piece, join=join)
    making: Any = SimpleNamespace(of="made", path=lambda unit: unit, gather=wanted)
    stream: Any = SimpleNamespace(name="scan", parser_version=1, budget=SimpleNamespace(slice_seconds=600))
    lease: Any = SimpleNamespace(is_trusted=lambda: is_ours[0], cycle=SimpleNamespace(chunk={}))
    worker: Any = SimpleNamespace(
        url="", files=str(tmp_path / "files"), stop=lambda: False, signal=lambda point: is_ours.__setitem__(0, True)
    )
    lost = gathering.gather(worker, stream, lease, making)
    assert (lost.is_over, lost.file) == (False, None)
    assert not (tmp_path / "files" / "whole").exists()
    assert len(list((tmp_path / "files").rglob("*.piece"))) == 2
    wanted.join = lambda pieces, target: target.write(b"".join(each.read() for each in pieces))
    is_ours[0] = True
    held = gathering.gather(worker, stream, lease, making)
    assert held.is_over
    assert (tmp_path / "files" / "whole").read_bytes() == b"xx"
    assert list((tmp_path / "files").rglob("*.piece")) == []
