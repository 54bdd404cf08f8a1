"""Archives read by their directory: whole ones of every kind, and what is cut, altered or larger than it says."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import replace

import pytest

from include.engine import zips

MEMBERS = {"CIK0000000001.json": b"a" * 300_000, "CIK0000000002.json": b'{"cik":2}', "CIK0000000003.json": b""}


def archive(members: Mapping[str, bytes] = MEMBERS, method: int = zipfile.ZIP_DEFLATED, comment: bytes = b"") -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as written:
        for name, body in members.items():
            written.writestr(name, body)
        written.comment = comment
    return file.getvalue()


def read(body: bytes) -> tuple[bytes, list[zips.Entry]]:
    return zips.directory_of(io.BytesIO(body), len(body))


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize("comment", [b"", b"a note with PK\x05\x06 in it"])
def test_members_come_out_as_they_went_in(method: int, comment: bytes) -> None:
    body = archive(method=method, comment=comment)
    _, entries = read(body)
    found = {entry.name: b"".join(zips.unpacked(entry, io.BytesIO(body))) for entry in entries}
    assert found == MEMBERS
    assert [(entry.crc32, entry.size) for entry in entries] == [(zlib.crc32(b), len(b)) for b in MEMBERS.values()]


def test_a_piece_of_an_archive_is_enough_for_the_members_in_it() -> None:
    body = archive()
    directory, entries = read(body)
    until = zips.ends(entries, body.index(directory))
    for entry in entries:
        piece = io.BytesIO(body[entry.offset : until[entry.offset]])
        assert b"".join(zips.unpacked(entry, piece, entry.offset)) == MEMBERS[entry.name]


def test_the_end_of_a_large_archive_is_read() -> None:
    """As zip64 has it: numbers that do not fit into the old record stand in another one before it."""
    file = io.BytesIO()
    with (
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as written,
        written.open("first", "w", force_zip64=True) as one,
    ):
        one.write(b"x" * 1_000)
    body = file.getvalue()
    end = body.rindex(b"PK\x05\x06")
    count, size, start = struct.unpack_from("<HII", body, end + 10)
    record = struct.pack("<4sQHHIIQQQQ", b"PK\x06\x06", 44, 45, 45, 0, 0, count, count, size, start)
    locator = struct.pack("<4sIQI", b"PK\x06\x07", 0, end, 1)
    large = (
        body[:end]
        + record
        + locator
        + struct.pack("<4sHHHHIIH", b"PK\x05\x06", 0, 0, *[0xFFFF] * 2, *[0xFFFFFFFF] * 2, 0)
    )
    _, (entry,) = read(large)
    assert b"".join(zips.unpacked(entry, io.BytesIO(large))) == b"x" * 1_000
    with pytest.raises(zips.ArchiveUnfit, match="locator"):
        read(large.replace(b"PK\x06\x07", b"PK\x06\x00"))


@pytest.mark.parametrize("kept", [0, 10, 0.2, 0.5, 0.999])
def test_a_cut_archive_is_none(kept: float) -> None:
    body = archive()
    with pytest.raises(zips.ArchiveUnfit):
        read(body[: kept if isinstance(kept, int) else int(len(body) * kept)])


def test_a_page_is_no_archive() -> None:
    with pytest.raises(zips.ArchiveUnfit, match="something else"):
        read(b"<!DOCTYPE html><html><body>Request rate threshold exceeded</body></html>" * 20)


def test_a_directory_that_lies_about_itself_is_refused() -> None:
    body = archive()
    end = body.rindex(b"PK\x05\x06")
    start_far = body[: end + 16] + struct.pack("<I", len(body)) + body[end + 20 :]
    with pytest.raises(zips.ArchiveUnfit, match="would end at"):
        read(start_far)
    one_more = body[: end + 8] + struct.pack("<HH", 4, 4) + body[end + 12 :]
    with pytest.raises(zips.ArchiveUnfit, match="entries"):
        read(one_more)


def test_an_altered_member_is_told_and_the_others_are_read() -> None:
    body = bytearray(archive(method=zipfile.ZIP_STORED))
    body[body.index(b'{"cik":2}') + 3] ^= 1
    _, entries = read(bytes(body))
    file = io.BytesIO(bytes(body))
    assert b"".join(zips.unpacked(entries[0], file)) == MEMBERS["CIK0000000001.json"]
    with pytest.raises(zips.MemberUnfit, match="checksum"):
        list(zips.unpacked(entries[1], file))


def test_a_member_is_never_unpacked_past_the_size_that_it_declares() -> None:
    body = archive({"bomb": b"\0" * 50_000_000})
    _, (entry,) = read(body)
    taken: list[int] = []
    with pytest.raises(zips.MemberUnfit, match="more than"):
        taken.extend(map(len, zips.unpacked(replace(entry, size=1_000_000), io.BytesIO(body))))
    assert sum(taken) <= 1_000_000
