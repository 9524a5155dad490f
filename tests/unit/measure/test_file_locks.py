"""Waits for locks of files in the text of /proc/locks."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

from purebpf.findings.facts import FileLock
from purebpf.measure.file_locks import file_locks, parse_locks
from tests.support.patience import until

LOCKS = """\
1: FLOCK  ADVISORY  WRITE 29412 fe:00:5525168 0 EOF
2: FLOCK  ADVISORY  WRITE 23583 fe:00:5525166 0 EOF
2: -> FLOCK  ADVISORY  WRITE 24412 fe:00:5525166 0 EOF
2:  -> FLOCK  ADVISORY  WRITE 24423 fe:00:5525166 0 EOF
3: POSIX  ADVISORY  READ 812 fe:00:131 1073741826 1073742335
4: OFDLCK ADVISORY  WRITE -1 fe:00:132 0 EOF
4: -> POSIX  ADVISORY  WRITE 900 fe:00:132 0 EOF
5: FLOCK  ADVISORY  WRITE 0 00:04:4026531836 0 EOF
5: -> FLOCK  ADVISORY  WRITE 901 00:04:4026531836 0 EOF
"""


def test_waiters_with_their_holder() -> None:
    assert list(parse_locks(LOCKS)) == [FileLock(24412, 23583), FileLock(24423, 23583)]


def test_a_text_that_says_nothing() -> None:
    assert list(parse_locks("")) == []
    assert list(parse_locks("1:\n2: -> FLOCK\nnoise\n")) == []


def test_what_the_kernel_says_of_a_child_that_waits(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    code = "import fcntl, sys; fcntl.flock(open(sys.argv[1]), fcntl.LOCK_EX)"
    with path.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with subprocess.Popen([sys.executable, "-c", code, str(path)]) as child:
            wanted = FileLock(child.pid, os.getpid())
            assert until(lambda: wanted in set(file_locks()))
            fcntl.flock(held, fcntl.LOCK_UN)
            assert child.wait() == 0
