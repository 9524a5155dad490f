"""Names of signals. Pure."""

from __future__ import annotations

from signal import Signals

__all__ = ["name_signal"]


def name_signal(number: int) -> str:
    """`SIGTERM`; `signal 34` of a real-time signal, which has no name."""
    try:
        return Signals(number).name
    except ValueError:
        return f"signal {number}"
