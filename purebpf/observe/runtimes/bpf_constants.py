"""Checks that a layout has the offsets that are constants in BPF programs."""

from __future__ import annotations

from collections.abc import Mapping

from purebpf.errors import NotSupportedError

__all__ = ["FILE", "LINE", "NAME", "check_offsets"]

NAME, FILE, LINE = 8, 24, 32
"""Bytes of `code_fields`, which python_code.h fills for functions of PHP and Ruby."""


def check_offsets(
    feature: str, layout: object, constants: Mapping[str, int], *, lines: bool
) -> None:
    """Check the fields of a layout against the constants of BPF.

    Args:
        feature: the name for the error, such as "PHP frames".
        layout: has a field for each name in `constants`.
        constants: the offsets in BPF.
        lines: the offsets that lead to lines are as in BPF.

    Raises:
        NotSupportedError: BPF has other offsets.
    """
    others = [name for name, offset in constants.items() if getattr(layout, name) != offset]
    if not lines:
        others.append("lines")
    if others:
        raise NotSupportedError(feature, f"BPF has other offsets of {', '.join(others)}")
