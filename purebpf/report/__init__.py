"""Profiles as data, and `purebpf report`, which shows perf.data files with names.

from purebpf.measure.perf_data_loader import read

profile = read("perf.data").profile      # a purebpf.report.Profile
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from purebpf.lazy import names

if TYPE_CHECKING:
    from purebpf.results import (
        Cause,
        Labels,
        Loss,
        Marks,
        Profile,
        Row,
        Slots,
        Stack,
        Unnamed,
        Waker,
    )

__all__ = [
    "Cause",
    "Labels",
    "Loss",
    "Marks",
    "Profile",
    "Row",
    "Slots",
    "Stack",
    "Unnamed",
    "Waker",
]

if not TYPE_CHECKING:  # a type checker would take any misspelt name for granted
    __getattr__ = names(__name__, {name: f"purebpf.results.{name}" for name in __all__})
