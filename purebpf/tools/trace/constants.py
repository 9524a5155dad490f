"""Numbers as the names of constants: `O_RDONLY|O_CLOEXEC`, `SEEK_SET`. Pure."""

from __future__ import annotations

from functools import cache

from purebpf.abi import bpf, perf
from purebpf.abi.tables import read_constants

__all__ = ["enum_name", "flag_names", "name_of", "numbers", "signal_name"]

_ENUMS = {
    **dict.fromkeys(("bpf_attach_type", "bpf_cmd", "bpf_map_type", "bpf_prog_type"), bpf),
    **dict.fromkeys(
        ("perf_event_read_format", "perf_event_sample_format", "perf_hw_cache_id",
         "perf_hw_cache_op_id", "perf_hw_cache_op_result_id", "perf_hw_id", "perf_sw_ids",
         "perf_type_id"),
        perf,
    ),
}  # fmt: skip
_LAST_SIGNAL = 64
_FIRST_RT = 32


@cache
def numbers(table: str) -> tuple[tuple[int, str], ...]:
    """Return the values and names of a table of `purebpf.abi.tables`, or of an enum."""
    if table in _ENUMS:
        return tuple((int(member), member.name) for member in getattr(_ENUMS[table], table))
    return tuple((value, name) for name, value in read_constants(table).items())


@cache
def _by_value(table: str) -> dict[int, str]:
    return dict(numbers(table))


@cache
def _widest_first(table: str) -> tuple[tuple[int, str], ...]:
    rows = [(value, name) for value, name in numbers(table) if value > 0]
    return tuple(sorted(rows, key=lambda row: -row[0].bit_count()))


def name_of(table: str, value: int) -> str | None:
    """The name of a number; None: it has none."""
    return _by_value(table).get(value)


def enum_name(table: str, value: int) -> str:
    """The name of a number, or the number in hexadecimal."""
    return _by_value(table).get(value) or f"{value & 0xFFFFFFFF:#x}"


def flag_names(table: str, value: int, empty: str = "0") -> str:
    """Return the names of the bits, joined by `|`; bits without a name come last, in hexadecimal.

    Names of several bits come before names of fewer bits: O_SYNC has the bit of O_DSYNC.
    """
    if not value:
        return _by_value(table).get(0, empty)
    left, flag_names = value, []
    for bits, name in _widest_first(table):
        if left & bits == bits:
            flag_names.append((bits, name))
            left &= ~bits
    names = [name for _, name in sorted(flag_names)]
    if left:
        names.append(f"{left:#x}")
    return "|".join(names)


def signal_name(number: int) -> str:
    """`SIGINT`, `SIGRT_5`, or the number."""
    if name := _by_value("signal").get(number):
        return name
    if _FIRST_RT <= number <= _LAST_SIGNAL:
        return f"SIGRT_{number - _FIRST_RT}" if number > _FIRST_RT else "SIGRTMIN"
    return str(number)
