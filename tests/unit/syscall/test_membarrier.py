"""membarrier(2), where the kernel has it."""

from __future__ import annotations

import os

import pytest

from purebpf.syscall import membarrier


def test_stores_are_ordered_by_the_kernel():
    assert membarrier.order_memory()


def test_a_machine_without_a_known_number_says_so(monkeypatch: pytest.MonkeyPatch):
    class Machine:
        machine = "riscv64"

    monkeypatch.setattr(os, "uname", Machine)
    assert not membarrier.order_memory()
