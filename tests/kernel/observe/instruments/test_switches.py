"""Time off the CPU as the kernel's programs count it."""

from __future__ import annotations

import ctypes
import queue
import threading
import time

import pytest

from purebpf.observe.instruments.offcpu_tracer import Switches
from purebpf.observe.instruments.task_filter import TaskFilter

pytestmark = pytest.mark.needs("bpf", "vmlinux_btf")

_LIBC = ctypes.CDLL(None, use_errno=True)
_PR_SET_NAME = 15
_ALL_STATES = (1 << 16) - 1


def test_a_name_is_one_key_whatever_the_thread_was_called_before():
    go, tids = threading.Event(), queue.SimpleQueue()

    def sleep_under_names() -> None:
        tids.put(threading.get_native_id())
        go.wait()
        for name in (b"first-long-name", b"a", b"second-and-long", b"a", b"third", b"a"):
            _LIBC.prctl(_PR_SET_NAME, name)
            time.sleep(0.001)

    thread = threading.Thread(target=sleep_under_names)
    thread.start()
    settings = {
        "states": _ALL_STATES,
        "threshold_ns": 1 << 60,  # none has a record of its own
        "user_stacks": False,
        "kernel_stacks": False,
    }
    with Switches(settings, {"sums": 4096}, TaskFilter(tids=(tids.get(),))) as switches:
        switches.start()
        go.set()
        thread.join()
        switches.stop()
        keys = list(switches.maps["sums"])
    assert {key.comm for key in keys} >= {"first-long-name", "a", "second-and-long", "third"}
    assert len(keys) == len(set(keys))
