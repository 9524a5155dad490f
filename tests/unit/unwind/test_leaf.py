"""Code ahead of a leaf without rules: purebpf/unwind/leaf.py."""

from __future__ import annotations

import pytest

from purebpf.unwind.leaf import Ahead, look_ahead


@pytest.mark.parametrize(
    ("code", "ahead"),
    [
        ("c9 c3", Ahead.FREES_STACK),  # leave; ret
        ("c9 e9 00 01 00 00", Ahead.FREES_STACK),  # leave; jmp
        ("31 c9 c9 c3", Ahead.FREES_STACK),  # xor %ecx,%ecx; leave; ret
        ("5b c3", Ahead.FREES_STACK),  # pop %rbx; ret
        ("48 83 c4 08 c3", Ahead.FREES_STACK),  # add $8,%rsp; ret
        ("ff c9 75 fc c3", Ahead.RETURNS_SOON),  # dec %ecx; jne; ret
        ("85 c9 74 02 89 c8 c3", Ahead.RETURNS_SOON),  # test %ecx,%ecx; je; mov; ret
        ("ff c9 75 fc" + " 90" * 20 + " c3", Ahead.RETURNS_LATER),
        ("90 90", Ahead.RETURNS_LATER),
    ],
)
def test_only_instructions_give_back_the_stack(code: str, ahead: Ahead) -> None:
    assert look_ahead(bytes.fromhex(code)) is ahead
