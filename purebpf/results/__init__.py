"""One model of results, one small writer per format. Pure.

The writers are modules of this package, imported when needed: `text`, `folded`, `json`.
"""

from __future__ import annotations

from purebpf.results.model.loss import Cause, Loss, count_cause
from purebpf.results.model.profile import Labels, Marks, Profile, Row, Slots, Stack, Unnamed, Waker

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
