"""Flags of the page allocator by name."""

from __future__ import annotations

import pytest

from purebpf.abi.gfp_flags import describe_gfp_flags


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        (0, "0"),
        (0x1, "GFP_DMA"),
        (0xCC0, "GFP_KERNEL"),
        (0xCC0 | 0x100, "GFP_KERNEL|__GFP_ZERO"),
        (0x400CC0, "GFP_KERNEL_ACCOUNT"),
        (0x820, "GFP_ATOMIC"),
        (0x200, "0x200"),
        (0x40 | 1 << 30, "__GFP_IO|0x40000000"),
    ],
)
def test_common_combinations_have_their_names(flags: int, text: str) -> None:
    assert describe_gfp_flags(flags) == text
