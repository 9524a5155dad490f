"""Frame pointers of a thread that sleeps."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from purebpf.observe.symbols.sleeping_stack import user_stack

SP = 0xFFFF_D000_0000
SIGNED = 0x00B3_AAAA_1234_5678
"""A return address with a signature in the bits from 48 on (PAC)."""


class Memory:
    """A stack, as `ProcessMemory` reads it."""

    def __init__(self, *words: int) -> None:
        self.content = struct.pack(f"<{len(words)}Q", *words)

    def read(self, address: int, size: int) -> bytes:
        at = address - SP
        return self.content[at : at + size] if 0 <= at < len(self.content) else b""


@pytest.mark.parametrize(("code_bits", "caller"), [(0, SIGNED), ((1 << 48) - 1, 0xAAAA_1234_5678)])
def test_return_addresses_lose_their_signature_where_they_have_one(
    code_bits: int, caller: int
) -> None:
    memory: Any = Memory(1, 2, SP + 32, SIGNED, 0, 0x1000)
    found = user_stack(memory, 0x5000, SP, SP + 16, 127, code_bits=code_bits)
    assert found == (0x5000, caller, 0x1000)
