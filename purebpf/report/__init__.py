"""One model of results, one small writer per format. Pure.

The writers are modules of this package, imported when needed: `text`, `folded`, `json`.
"""

from __future__ import annotations

from purebpf.report.loss import Cause, Loss
from purebpf.report.profile import Labels, Profile, Row, Slots, Stack, Unnamed

__all__ = ["Cause", "Labels", "Loss", "Profile", "Row", "Slots", "Stack", "Unnamed"]
