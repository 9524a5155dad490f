"""The argument of perf_event_open(2), struct perf_event_attr, as text. Pure.

As in strace: some members always, the set flags, dots for the rest; before the dots, the other
members that are not 0.

`purebpf.abi.perf` has the members and their places.
"""

from __future__ import annotations

from purebpf.abi.perf import PERF_EVENT_ATTR, perf_type_id
from purebpf.tools.trace.constants import enum_name, flag_names
from purebpf.tools.trace.kinds import PERF_ATTR_PART, Kind
from purebpf.tools.trace.special import pointer
from purebpf.tools.trace.view import View

__all__ = ["attributes"]

_CONFIGS: dict[object, str] = {perf_type_id.PERF_TYPE_HARDWARE: "perf_hw_id",
                               perf_type_id.PERF_TYPE_SOFTWARE: "perf_sw_ids"}  # fmt: skip
_FLAGS = {"sample_type": "perf_event_sample_format", "read_format": "perf_event_read_format"}
_ALWAYS = ("type", "size", "config", "sample_period", "sample_freq", "sample_type", "read_format",
           "precise_ip")  # fmt: skip
_SKIDS = ("arbitrary skid", "constant skid", "requested to have 0 skid", "must have 0 skid")
_HEXADECIMAL = ("config1", "config2", "config3", "bp_addr", "branch_sample_type",
                "sample_regs_user", "sample_regs_intr")  # fmt: skip


def attributes(view: View, index: int, _: Kind) -> str:
    """`{type=PERF_TYPE_SOFTWARE, size=PERF_ATTR_SIZE_VER7, config=..., disabled=1, ...}`."""
    data = view.piece(index, PERF_ATTR_PART) or view.piece(index)
    if not data:
        return pointer(view.arguments[index])
    size = int.from_bytes(data[4:8], "little")
    values = PERF_EVENT_ATTR.unpack(data[: size or len(data)])
    skipped = {"sample_period" if values.get("freq") else "sample_freq",
               "wakeup_events" if values.get("watermark") else "wakeup_watermark"}  # fmt: skip
    is_breakpoint = values.get("type") == perf_type_id.PERF_TYPE_BREAKPOINT
    skipped |= {"config1", "config2"} if is_breakpoint else {"bp_addr", "bp_len"}
    skipped |= {"kprobe_func", "uprobe_path", "kprobe_addr", "probe_offset"}  # config1, config2
    fields = [
        f"{name}={_member(name, value, values)}"
        for name, value in sorted(values.items(), key=lambda member: _is_rest(member[0]))
        if isinstance(value, int) and name not in skipped and (value or name in _ALWAYS)
    ]
    return f"{{{', '.join(fields)}, ...}}"


def _is_rest(name: str) -> bool:
    """Return True if strace omits a member."""
    return name not in _ALWAYS and name not in PERF_EVENT_ATTR.bits


def _member(name: str, value: int, values: dict[str, int | bytes]) -> str:
    if name == "type":
        return enum_name("perf_type_id", value)
    if name == "size":
        return enum_name("perf_attr_size", value)
    if name == "config":
        return _config(value, values["type"])
    if name == "precise_ip":
        return f"{value} /* {_SKIDS[value]} */"
    if table := _FLAGS.get(name):
        return flag_names(table, value)
    return f"{value:#x}" if name in _HEXADECIMAL else str(value)


def _config(value: int, kind: object) -> str:
    if table := _CONFIGS.get(kind):
        return enum_name(table, value)
    if kind == perf_type_id.PERF_TYPE_TRACEPOINT:  # its number in tracefs
        return str(value)
    if kind == perf_type_id.PERF_TYPE_HW_CACHE and value < 1 << 24:
        result, operation, cache = value >> 16, value >> 8 & 0xFF, value & 0xFF
        return (
            f"{enum_name('perf_hw_cache_op_result_id', result)}<<16"
            f"|{enum_name('perf_hw_cache_op_id', operation)}<<8"
            f"|{enum_name('perf_hw_cache_id', cache)}"
        )
    return f"{value:#x}" if value else "0"
