"""Every row of real files, as readelf interprets them."""

from __future__ import annotations

import glob
import shutil
from pathlib import Path

import pytest

from purebpf.symbols.elf_image import ElfImage
from purebpf.unwind.cfi_file import CfiFile
from purebpf.unwind.windows import WINDOW_BITS, cut_window
from tests.support.oracles.readelf_frames import compare
from tests.unit.unwind.test_windows import _rules

_PLACES = (
    "/lib/*/libc.so.6",
    "/lib/ld-linux-*.so.?",
    "/lib64/ld-linux-*.so.?",  # not libx32: no rules for 32-bit pointers
    "/usr/lib/*/libpython3.*.so.1.0",
    "/usr/lib/*/libstdc++.so.6",
    "/bin/bash",
    *("/usr/lib32/libc.so.6", "/usr/lib32/ld-linux.so.2", "/usr/lib32/libstdc++.so.6"),
    "/usr/aarch64-linux-gnu/lib/libm.so.6",  # Debian's cross package
)
_FILES = sorted({str(Path(path).resolve()) for place in _PLACES for path in glob.glob(place)})
_LARGE = sorted(
    {str(Path(path).resolve()) for path in glob.glob("/usr/lib/*/libLLVM*.so*")}
    | {path for path in (shutil.which("node"),) if path}
)

pytestmark = [pytest.mark.slow, pytest.mark.needs("readelf")]


def _open(path):
    data = Path(path).read_bytes()
    return CfiFile(ElfImage.of_bytes(data, path))


@pytest.mark.parametrize("path", _FILES, ids=lambda path: Path(path).name)
def test_rows_are_those_of_readelf(path):
    cfi = _open(path)
    found = compare(path, cfi)
    assert found.rows > 100
    assert found.different == {}
    assert (cfi.broken, cfi.exhausted) == (0, False)


@pytest.mark.parametrize("path", _LARGE[:2], ids=lambda path: Path(path).name)
def test_windows_of_large_files_are_those_of_their_rows(path):
    whole, apart = _open(path), _open(path)
    assert not apart.is_small
    inside = sorted({at >> WINDOW_BITS for at in whole.rows.starts})
    for number in inside[:: max(1, len(inside) // 300)]:
        expected = _rules(cut_window(whole.rows, number), whole)
        assert _rules(apart.window(number), apart) == expected
    assert not apart.exhausted
