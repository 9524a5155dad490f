"""A data section with a longer array at its end, in the kernel."""

from __future__ import annotations

import pytest

import purebpf
from purebpf import build

pytestmark = pytest.mark.needs("bpf", "clang")

_C = """#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
unsigned count SEC(".data.per_cpu") = 1;
int per_cpu[1] SEC(".data.per_cpu") = {5};
SEC("socket") int sum(struct __sk_buff *skb)
{
    int total = 0;
    for (unsigned i = 0; i < count && i < 16; i++) {
        int *number = &per_cpu[i];
        total += *number;
    }
    return total;
}
char LICENSE[] SEC("license") = "GPL";
"""


def test_user_space_and_the_program_share_the_longer_array() -> None:
    spec = purebpf.read_object(build.compile(_C, cache=False))
    with purebpf.load(spec.resize(**{".data.per_cpu": 16}).set(count=16)) as obj:
        assert not obj.btf_problem
        assert obj.maps[".data.per_cpu"].info.value_size == 68
        assert obj.globals["per_cpu"] == [5, *[0] * 15]
        for index in range(16):
            obj.globals["per_cpu"][index] = index
        assert obj.programs["sum"].test_run(bytes(64)).retval == sum(range(16))
