"""Files by inode, as the walk finds them in processes that are not published."""

from __future__ import annotations

import os
import struct
from types import SimpleNamespace
from typing import Any

import pytest

from purebpf.observe.symbols.mapped_files import Identity
from purebpf.observe.unwind import live_files
from purebpf.observe.unwind.live_files import LiveFiles
from purebpf.unwind.elf_frames import only_code

FILE = Identity(os.makedev(254, 3), 77, 1_700_000_000_123_456_789, 5000, 0)
CODE = SimpleNamespace(type=1, flags=5, offset=0x1040, address=0x402040, file_size=0x300)
DATA = SimpleNamespace(type=1, flags=6, offset=0x2000, address=0x404000, file_size=0x100)


class Maps(dict[bytes, bytes]):
    max_entries = 2

    def fileno(self) -> int:
        return 3


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> Maps:
    kept = Maps()
    monkeypatch.setattr(
        live_files.bpf, "map_update_elem", lambda _fd, key, value: kept.update({key: value})
    )
    monkeypatch.setattr(live_files.bpf, "map_delete_elem", lambda _fd, key: kept.pop(key))
    return kept


def cfi(*segments: Any) -> Any:
    return SimpleNamespace(only_code=only_code(segments))


def test_a_file_is_found_by_the_numbers_of_the_kernel(kept: Maps) -> None:
    files = LiveFiles({"live_files": kept})  # type: ignore[dict-item]
    files.add(FILE, cfi(DATA, CODE), 9)
    ((key, value),) = kept.items()
    assert struct.unpack("<QII", key) == (77, 254 << 20 | 3, 0)
    assert struct.unpack("<QqIIQQQ", value) == (
        *(5000, 1_700_000_000, 123_456_789, 9),
        *(0x1000, 0x1340, 0x401000),
    )
    files.remove(FILE, 8)
    assert kept, "the number of an earlier version of the file"
    files.remove(FILE, 9)
    assert not kept


def test_what_cannot_be_told_by_one_piece_of_code_is_left_out(kept: Maps) -> None:
    files = LiveFiles({"live_files": kept})  # type: ignore[dict-item]
    files.add(FILE, cfi(CODE, CODE), 1)
    files.add(("[vdso]", b"x"), cfi(CODE), 2)
    files.remove(("[vdso]", b"x"), 2)
    assert not kept
    for number in range(5):
        files.add(FILE._replace(inode=number), cfi(CODE), number)
    assert len(kept) == 2, "room for two"


def test_objects_without_the_map_have_no_files() -> None:
    files = LiveFiles({})
    files.add(FILE, cfi(CODE), 1)
    files.remove(FILE, 1)
    assert not files.is_used
