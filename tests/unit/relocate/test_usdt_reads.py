"""Which arguments of a static probe a program reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from purebpf import build
from purebpf.elf import read_object
from purebpf.relocate.usdt_reads import arguments_read
from purebpf.spec import ObjectSpec

DATA = Path(__file__).parents[2] / "data"

_HEAD = """#include <linux/bpf.h>
#include <linux/ptrace.h>
#include <stdbool.h>
#include <bpf/usdt.bpf.h>
char LICENSE[] SEC("license") = "GPL";
long sum;
int wanted;
struct { __uint(type, BPF_MAP_TYPE_PROG_ARRAY); __uint(max_entries, 1); __uint(key_size, 4);
         __uint(value_size, 4); } others SEC(".maps");
"""
_PROGRAM = 'SEC("usdt") int p(struct pt_regs *c)'


def compiled(body: str) -> ObjectSpec:
    return read_object(build.compile(f"{_HEAD}{body}\n", cache=False))


def test_numbers_of_the_fixture() -> None:
    spec = read_object(DATA / "attach_usdt.bpf.o")
    assert arguments_read(spec, "on_guarded") == {0}
    assert arguments_read(spec, "on_silent") == {0}
    forms = arguments_read(spec, "on_forms")
    assert forms is None or forms == set(range(12))


@pytest.mark.needs("clang")
@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ('SEC("usdt") int BPF_USDT(p) { sum++; return 0; }', set()),
        ('SEC("usdt") int BPF_USDT(p, long a, long b) { sum += b; return 0; }', {0, 1}),
        (
            (
                "static __noinline int inner(struct pt_regs *c) { long x; bpf_usdt_arg(c, 7, &x);"
                f" return x; }} {_PROGRAM} {{ sum = inner(c); return 0; }}"
            ),
            {7},
        ),
        (f"{_PROGRAM} {{ sum = bpf_usdt_arg_cnt(c) + bpf_usdt_cookie(c); return 0; }}", set()),
        (f"{_PROGRAM} {{ bpf_usdt_arg(c, wanted, &sum); return 0; }}", None),
        (
            (
                f"{_PROGRAM} {{ int n = wanted ? 3 : 4; long x; bpf_usdt_arg(c, n, &x); sum = x;"
                " return 0; }"
            ),
            None,
        ),
        (f"{_PROGRAM} {{ bpf_tail_call(c, &others, 0); return 0; }}", None),
        (
            (
                f"{_PROGRAM} {{ int k = 0; struct __bpf_usdt_spec *s ="
                " bpf_map_lookup_elem(&__bpf_usdt_specs, &k); if (s) sum = s->arg_cnt; return 0; }"
            ),
            None,
        ),
    ],
)
def test_numbers_by_the_code(body: str, expected: set[int] | None) -> None:
    assert arguments_read(compiled(body), "p") == expected
