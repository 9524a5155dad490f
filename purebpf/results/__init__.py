"""One model of results, one small writer per format. Pure.

The writers are modules of this package, imported when needed: `text`, `folded`, `json`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from purebpf.lazy import names

if TYPE_CHECKING:
    from purebpf.results.model.loss import Cause, Loss, count_cause
    from purebpf.results.model.profile import (
        Labels,
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
    "count_cause",
]

if not TYPE_CHECKING:  # a type checker would take any misspelt name for granted
    __getattr__ = names(
        __name__,
        {
            "Cause": "purebpf.results.model.loss.Cause",
            "Labels": "purebpf.results.model.profile.Labels",
            "Loss": "purebpf.results.model.loss.Loss",
            "Marks": "purebpf.results.model.profile.Marks",
            "Profile": "purebpf.results.model.profile.Profile",
            "Row": "purebpf.results.model.profile.Row",
            "Slots": "purebpf.results.model.profile.Slots",
            "Stack": "purebpf.results.model.profile.Stack",
            "Unnamed": "purebpf.results.model.profile.Unnamed",
            "Waker": "purebpf.results.model.profile.Waker",
            "count_cause": "purebpf.results.model.loss.count_cause",
        },
    )
