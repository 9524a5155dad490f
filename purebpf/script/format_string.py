"""Format strings of printf(), cut into pieces."""

from __future__ import annotations

from purebpf.late_pattern import compile_later
from purebpf.tuples import NamedTuple

__all__ = ["Conversion", "split_format"]

_CONVERSION = compile_later(
    r"%(?P<flags>[-+ #0]*)(?P<width>\d*)(?:\.(?P<precision>\d+))?(?P<length>hh|h|ll|l|j|z|t)?"
    r"(?P<kind>rh|rx|gr|[diouxXcspr%])"
)
_BITS = {"hh": 8, "h": 16, "": 32}


class Conversion(NamedTuple):
    """One conversion, and the text before it.

    `kind` is its letter, "rh" and "rx" of buffers, "gr" of flags for the allocation of pages;
    `bits` is the width of its number.
    """

    before: str
    flags: str
    width: int
    precision: int
    bits: int
    kind: str


def split_format(text: str) -> tuple[list[Conversion], str]:
    """Return the conversions of a format string, and the text behind the last.

    Raises:
        ValueError: a `%` that begins no conversion.
    """
    conversions: list[Conversion] = []
    before, place = "", 0
    while (percent := text.find("%", place)) >= 0:
        before += text[place:percent]
        match = _CONVERSION.match(text, percent)
        if match is None and text[percent + 1 : percent + 2].strip() == "":
            before, place = f"{before}%", percent + 1
            continue
        if match is None:
            raise ValueError(text[percent : percent + 8])
        place = match.end()
        if match["kind"] == "%":
            before += "%"
            continue
        precision = int(match["precision"]) if match["precision"] else -1
        bits = _BITS.get(match["length"] or "", 64)
        width = int(match["width"] or 0)
        conversions.append(
            Conversion(before, match["flags"], width, precision, bits, match["kind"])
        )
        before = ""
    return conversions, before + text[place:]
