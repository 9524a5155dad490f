"""What a compiler says, each diagnostic once."""

from __future__ import annotations

import pytest

import purebpf
from purebpf import build
from purebpf.build.diagnostics import without_repetition

TWICE = """\
In file included from a.bpf.c:1:
./a.h:7:5: error: use of undeclared identifier 'x' [-Wx]
    7 |     x;
      |     ^
a.bpf.c:3:9: note: expanded here
a.bpf.c:9:1: warning: unused variable 'y' [-Wunused]
    9 | y
      | ^
In file included from a.bpf.c:1:
./a.h:7:9: error: use of undeclared identifier 'x' [-Wx]
    7 |     x;
      |         ^
./a.h:8:9: error: use of undeclared identifier 'x' [-Wx]
1 warning and 3 errors generated.
"""

ONCE = """\
In file included from a.bpf.c:1:
./a.h:7:5: error: use of undeclared identifier 'x' [-Wx] (2 times)
    7 |     x;
      |     ^
a.bpf.c:3:9: note: expanded here
a.bpf.c:9:1: warning: unused variable 'y' [-Wunused]
    9 | y
      | ^
./a.h:8:9: error: use of undeclared identifier 'x' [-Wx]
1 warning and 3 errors generated.
"""

LARGE = """
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
SEC("socket") int count(struct __sk_buff *skb)
{
	volatile __u64 numbers[100];

	for (int i = 0; i < 100; i++)
		numbers[i] = skb->len;
	numbers[0] = 1;
	numbers[1] = 2;
	numbers[99] = 3;
	return numbers[skb->len % 100];
}
"""


def test_a_diagnostic_comes_once_for_a_line() -> None:
    assert without_repetition(TWICE) == ONCE


@pytest.mark.parametrize("said", ["", "\n", "ld: no\n", "zig: error: no such file", ONCE, "\r\f\n"])
def test_other_words_stay(said: str) -> None:
    assert without_repetition(said) == said


@pytest.mark.needs("clang")
@pytest.mark.any_kernel
def test_the_stack_limit_is_said_once() -> None:
    with pytest.raises(purebpf.CompileError) as info:
        build.compile(LARGE, cache=False)
    assert info.value.log.count("BPF stack limit") == 1
    assert "times)" in info.value.log
