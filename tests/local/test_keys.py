"""Secrets: made once, kept private, never replaced by guessing."""

from __future__ import annotations

import base64
import stat
from pathlib import Path

import pytest

from include.local import keys
from include.local.failure import LocalFailure


def test_keys_are_made_once_and_for_their_owner_alone(tmp_path: Path) -> None:
    first = keys.keys(tmp_path)
    assert keys.keys(tmp_path) == first
    assert stat.S_IMODE((tmp_path / "secrets.json").stat().st_mode) == 0o600
    assert len(base64.urlsafe_b64decode(first.fernet)) == 32
    assert len(first.jwt) >= 64


def test_two_installations_have_different_keys(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    assert keys.keys(tmp_path / "one") != keys.keys(tmp_path / "two")


def test_keys_do_not_show_themselves(tmp_path: Path) -> None:
    made = keys.keys(tmp_path)
    assert made.fernet not in repr(made)
    assert made.jwt not in str(made)


def test_there_is_a_password_for_the_admin_and_one_for_the_viewer(tmp_path: Path) -> None:
    made = keys.passwords(tmp_path)
    assert set(made) == {"admin", "viewer"}
    assert made["admin"] != made["viewer"]
    assert keys.passwords(tmp_path) == made
    assert stat.S_IMODE((tmp_path / "passwords.json").stat().st_mode) == 0o600


@pytest.mark.parametrize(("name", "read"), [("secrets.json", keys.keys), ("passwords.json", keys.passwords)])
@pytest.mark.parametrize("content", ["", "{", "[]", "{}"])
def test_a_broken_file_is_told_and_left_as_it_is(tmp_path: Path, name: str, read: object, content: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(LocalFailure, match="left as it is"):
        read(tmp_path)  # type: ignore[operator]
    assert (tmp_path / name).read_text() == content
