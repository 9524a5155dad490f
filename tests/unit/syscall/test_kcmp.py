"""kcmp(2): threads share their descriptors, processes do not."""

from __future__ import annotations

import os
import subprocess
import threading

import pytest

from purebpf.syscall import kcmp


def test_threads_share_and_processes_do_not() -> None:
    numbers: list[int] = []
    asked = threading.Event()

    def wait() -> None:
        numbers.append(threading.get_native_id())
        asked.wait(10)

    thread = threading.Thread(target=wait)
    thread.start()
    with subprocess.Popen(["sleep", "10"]) as other:
        try:
            while not numbers:
                pass
            if kcmp.share_files(os.getpid(), os.getpid()) is None:
                pytest.skip("this kernel has no kcmp(2) (CONFIG_KCMP), or forbids it")
            assert kcmp.share_files(os.getpid(), numbers[0])
            assert kcmp.share_directory(os.getpid(), numbers[0])
            assert kcmp.share_files(os.getpid(), other.pid) is False
            assert kcmp.share_directory(os.getpid(), other.pid) is False
        finally:
            asked.set()
            thread.join()
            other.kill()


def test_a_task_that_does_not_exist_is_not_known() -> None:
    assert kcmp.share_files(os.getpid(), 1 << 30) is None


def test_other_machines_have_other_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kcmp, "_NUMBERS", {})
    assert kcmp.share_files(os.getpid(), os.getpid()) is None
