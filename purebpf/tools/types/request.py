"""The measurement of `purebpf types`."""

from __future__ import annotations

from purebpf.measure.options import RunOptions, TargetOptions

__all__ = ["FREQUENCY", "MAP_ENTRIES", "TypesOptions"]

FREQUENCY = 999
MAP_ENTRIES = 65536


class TypesOptions(TargetOptions, RunOptions):
    """A frozen request: the targets, the rate, and the end."""

    frequency: int = FREQUENCY
    map_entries: int = MAP_ENTRIES
