"""Arguments of kernel functions in the contexts of fentry and fexit programs."""

from __future__ import annotations

import pytest

from purebpf.observe.script.local_host import LocalHost
from purebpf.script import tree
from purebpf.script.function_arguments import function_fields, result_type
from purebpf.script.point import Point
from purebpf.script.world import World

pytestmark = [
    pytest.mark.needs("vmlinux_btf"),
    pytest.mark.any_kernel,  # before 5.13, __sys_bpf() has no struct among its parameters
]


def test_a_struct_that_is_passed_by_value_takes_its_size() -> None:
    world, node = World(LocalHost()), tree.Node(0, 0)
    point = Point("fexit", "fexit:__sys_bpf", "fexit/__sys_bpf")
    fields = function_fields(world, point, node)
    if fields["uattr"].type.kind != "struct":
        pytest.skip("the second parameter of __sys_bpf() is no struct")
    assert {name: field.offset for name, field in fields.items()} == {
        "cmd": 0, "uattr": 8, "size": 24,
    }  # fmt: skip
    assert result_type(world, point, node)[1] == 32
