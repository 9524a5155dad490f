"""Identifiers of files, beside the test vector of OpenTelemetry's own profiler."""

from __future__ import annotations

from hashlib import sha256

import pytest

from purebpf.symbols.elf_image import ElfImage
from purebpf.symbols.elf_notes import find_build_id, find_go_build_id
from purebpf.symbols.file_ids import FileIds, hash_of_ends, ids_by_name


def hashed(data: bytes) -> str:
    return hash_of_ends(lambda offset, size: data[offset : offset + size], len(data))


def test_the_hash_of_opentelemetry() -> None:
    """TestFileIDFromExecutableReader of opentelemetry-ebpf-profiler, libpf/fileid_test.go."""
    assert hashed(b"\x7fELF\x00\x01\x02\x03\x04") == "caf6e5907166ac76eef618e5f7f59cd9"


@pytest.mark.parametrize("size", [0, 4095, 4096, 4097, 8191, 8192, 100_000])
def test_head_tail_and_length_are_hashed(size: int) -> None:
    data = bytes(number % 251 for number in range(size))
    expected = sha256(data[:4096] + data[-4096:] + size.to_bytes(8, "big")).digest()
    assert hashed(data) == expected[:16].hex()
    if size > 9000:  # the middle does not count
        assert hashed(data[:5000] + b"\xff" + data[5001:]) == hashed(data)


def test_build_ids_of_both_toolchains() -> None:
    gnu = b"\4\0\0\0\3\0\0\0\3\0\0\0GNU\0abc\0"
    go = b"\4\0\0\0\5\0\0\0\4\0\0\0Go\0\0a/b/c\0\0\0"
    assert find_build_id(go + gnu) == b"abc"
    assert find_go_build_id(gnu + go) == b"a/b/c"
    assert find_go_build_id(gnu) == b""


def test_this_interpreter_has_no_build_id_of_go() -> None:
    import sys

    with open(sys.executable, "rb") as file:
        assert ElfImage.of_bytes(file.read(), "python").go_build_id == ""


def test_names_of_several_files_have_no_identifier() -> None:
    libc = FileIds("aa", htlhash="11")
    known = {("/lib/libc.so", "aa"): libc, ("/lib/libz.so", "bb"): FileIds("bb")}
    assert ids_by_name([("/lib/libc.so", "aa")], known) == {
        ("libc.so", "aa"): libc,
        ("libc.so", ""): libc,
    }
    both = [("/lib/libc.so", "aa"), ("/srv/libc.so", "cc")]
    assert ids_by_name(both, known) == {
        ("libc.so", "aa"): libc,
        ("libc.so", "cc"): FileIds("cc"),
    }, "a function of libc.so is in one of two files"
    assert ids_by_name([("/a/x", ""), ("/b/x", "")], {("/a/x", ""): FileIds(go="1")}) == {}
