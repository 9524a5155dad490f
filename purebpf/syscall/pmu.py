"""The performance units (PMUs) of this machine, and their events, as sysfs lists them."""

from __future__ import annotations

import os

from purebpf.syscall import proc

__all__ = ["attribute", "events", "names", "path"]


def path(unit: str) -> str:
    """Return the path of a performance unit in sysfs."""
    return f"{proc.SYS}/bus/event_source/devices/{unit}"


def names() -> list[str]:
    """Return the names of the performance units in sysfs, sorted."""
    return _list(path(""))


def events(unit: str) -> list[str]:
    """Return the names of a unit's events, sorted; their scales and units are not events."""
    return [event for event in _list(f"{path(unit)}/events") if "." not in event]


def _list(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def attribute(unit: str, name: str) -> str | None:
    """An attribute of a performance unit, as `attribute("kprobe", "type")`; None: there is none."""
    text = proc.read(f"{path(unit)}/{name}")
    return None if text is None else text.strip()
