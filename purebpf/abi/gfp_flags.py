"""The flags of the kernel's page allocator (`gfp_t`) by name.

Source: include/linux/gfp_types.h; the order of the names is that of the kernel's own texts in
include/trace/events/mmflags.h. The bits below are the same from Linux 5.10 to 7.2; higher ones
depend on the version and the configuration of a kernel, and stay numbers.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["describe_gfp_flags"]

_BITS: Mapping[str, int] = {
    "DMA": 0x1, "HIGHMEM": 0x2, "DMA32": 0x4, "MOVABLE": 0x8, "RECLAIMABLE": 0x10, "HIGH": 0x20,
    "IO": 0x40, "FS": 0x80, "ZERO": 0x100, "DIRECT_RECLAIM": 0x400, "KSWAPD_RECLAIM": 0x800,
    "WRITE": 0x1000, "NOWARN": 0x2000, "RETRY_MAYFAIL": 0x4000, "NOFAIL": 0x8000,
    "NORETRY": 0x10000, "MEMALLOC": 0x20000, "COMP": 0x40000, "NOMEMALLOC": 0x80000,
    "HARDWALL": 0x100000, "THISNODE": 0x200000, "ACCOUNT": 0x400000,
}  # fmt: skip
_RECLAIM = _BITS["DIRECT_RECLAIM"] | _BITS["KSWAPD_RECLAIM"]
_KERNEL = _RECLAIM | _BITS["IO"] | _BITS["FS"]
_USER = _KERNEL | _BITS["HARDWALL"]
_HIGHUSER = _USER | _BITS["HIGHMEM"]
_MOVABLE = _HIGHUSER | _BITS["MOVABLE"]
_LIGHT = (_MOVABLE | _BITS["COMP"] | _BITS["NOMEMALLOC"] | _BITS["NOWARN"]) & ~_RECLAIM
_NAMES: Mapping[str, int] = {
    "GFP_TRANSHUGE": _LIGHT | _BITS["DIRECT_RECLAIM"], "GFP_TRANSHUGE_LIGHT": _LIGHT,
    "GFP_HIGHUSER_MOVABLE": _MOVABLE, "GFP_HIGHUSER": _HIGHUSER, "GFP_USER": _USER,
    "GFP_KERNEL_ACCOUNT": _KERNEL | _BITS["ACCOUNT"], "GFP_KERNEL": _KERNEL,
    "GFP_NOFS": _RECLAIM | _BITS["IO"], "GFP_ATOMIC": _BITS["HIGH"] | _BITS["KSWAPD_RECLAIM"],
    "GFP_NOIO": _RECLAIM, "GFP_NOWAIT": _BITS["KSWAPD_RECLAIM"] | _BITS["NOWARN"],
    "GFP_DMA": _BITS["DMA"], "GFP_DMA32": _BITS["DMA32"],
    **{f"__GFP_{name}": bit for name, bit in _BITS.items() if not name.startswith("DMA")},
}  # fmt: skip


def describe_gfp_flags(flags: int) -> str:
    """Return the names of flags with `|` between them; bits without a name as a number."""
    words = []
    for name, mask in _NAMES.items():
        if flags & mask == mask:
            words.append(name)
            flags &= ~mask
    if flags or not words:
        words.append(f"{flags:#x}" if flags else "0")
    return "|".join(words)
