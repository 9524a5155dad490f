"""The model of saved profiles: stacks with weights and labels, and the samples that were lost."""

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
