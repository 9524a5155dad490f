"""What live tests share."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def bpffs(tmp_path: Path) -> Iterator[Path]:
    """A bpf file system of this test's own."""
    libc = ctypes.CDLL(None, use_errno=True)
    where = os.fsencode(tmp_path)
    if libc.mount(b"bpf", where, b"bpf", 0, None):
        pytest.fail(f"mount(bpf): {os.strerror(ctypes.get_errno())}")
    yield tmp_path
    assert libc.umount2(where, 2) == 0  # MNT_DETACH
