"""A process that spoils its own interpreter: its profile ends, without control characters."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from purebpf.runtimes.cpython.layouts import LAYOUTS
from tests.commands.profile.test_python_frames import started
from tests.support.environment import run
from tests.support.nightly import by_day

pytestmark = pytest.mark.needs("bpf", "perf_event", "task_pt_regs", "vmlinux_btf")
VERSION = sys.version_info[:2]
LAYOUT = LAYOUTS.get(VERSION)
FRAME = "frame = ctypes.c_uint64.from_address(id(sys._getframe()) + 24).value\n"
"""PyFrameObject.f_frame, since 3.11."""

SPOILED = {
    "a frame that is its own caller": (
        f"{FRAME}\nctypes.c_uint64.from_address(frame + {{frame_previous}}).value = frame\n"
    ),
    "a name of 2^62 characters": (
        "name = id(spin.__code__.co_qualname)\n"
        "ctypes.c_uint64.from_address(name + {string_length}).value = 1 << 62\n"
    ),
    "a name without an object": (
        "ctypes.c_uint64.from_address(id(spin.__code__) + {code_qualname}).value = 1 << 62\n"
    ),
    "controls and markup in a name": (
        "spin.__code__ = spin.__code__.replace(co_qualname='\\x1b[2J<script>\\n;evil')\n"
    ),
}


@pytest.mark.skipif(LAYOUT is None or VERSION < (3, 11), reason="spoils frames of 3.11 and later")
@pytest.mark.parametrize("spoil", by_day(SPOILED.values(), list(SPOILED.values())[:2]), ids=SPOILED)
def test_a_spoiled_interpreter_ends_no_profile(spoil: str, tmp_path: Path) -> None:
    assert LAYOUT is not None
    program = (
        "import ctypes, sys\ndef spin():\n    print(flush=True)\n    while True: pass\n"
        f"{spoil.format(**LAYOUT._asdict())}\nspin()\n"
    )
    with started(sys.executable, program, tmp_path) as process:
        for form in ("folded", "html"):
            result = run(
                "profile", "--format", form, "-U", "-F", "199", "-p", str(process.pid), "0.5"
            )
            assert process.poll() is None
            assert result.returncode == 0
            assert "Traceback" not in result.stderr
            assert "\x1b[2J" not in result.stdout
            assert "<script>\n;evil" not in result.stdout
            assert "\nevil" not in result.stdout
