"""Programs of linked objects and user space mean the same variable by a name."""

from __future__ import annotations

import pytest

import purebpf
from purebpf import build

pytestmark = pytest.mark.needs("bpf", "clang", "bpftool")

_HEAD = "#include <linux/bpf.h>\n#include <bpf/bpf_helpers.h>\n"
_DECLARES = """
int own SEC(".data.shared") = 5;
extern int theirs SEC(".data.shared");
__attribute__((weak)) int replaced SEC(".data.shared") = 100;
SEC("socket") int sum(struct __sk_buff *skb) { own += 1; return own * 100 + theirs + replaced; }
char LICENSE[] SEC("license") = "GPL";
"""
_DEFINES = """
int before SEC(".data.shared") = 3;
int theirs SEC(".data.shared") = 40;
int replaced SEC(".data.shared") = 200;
"""


@pytest.mark.parametrize("turned", [False, True])
def test_a_program_and_user_space_share_each_variable(turned: bool) -> None:
    objects = [build.compile(_HEAD + source, cache=False) for source in (_DECLARES, _DEFINES)]
    with purebpf.load(build.link(*(objects[::-1] if turned else objects))) as obj:
        assert not obj.btf_problem
        names = ("own", "theirs", "before", "replaced")
        assert [obj.globals[name] for name in names] == [5, 40, 3, 200]
        assert obj.programs["sum"].test_run(bytes(64)).retval == 840
        obj.globals["theirs"] = 70
        obj.globals["replaced"] = 1000
        assert obj.programs["sum"].test_run(bytes(64)).retval == 1770
        assert [obj.globals[name] for name in names] == [7, 70, 3, 1000]
