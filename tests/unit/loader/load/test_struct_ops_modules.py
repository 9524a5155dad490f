"""struct_ops of a module: the map's type and the programs' target are ids in the module's BTF.

No module of Debian's kernels has any; what is asked of the kernel is looked at instead.
"""

from __future__ import annotations

import errno
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from purebpf.abi.bpf import BPF_F_VTYPE_BTF_OBJ_FD
from purebpf.btf.types.kinds import Kind
from purebpf.btf.types.parse import Btf
from purebpf.elf import read_object
from purebpf.errors import KernelError, NotSupportedError
from purebpf.loader.load import struct_ops
from purebpf.loader.programs.attach_target import AttachTarget
from purebpf.loader.types.btf_modules import ModuleType
from purebpf.syscall.backend import replaced as backend_replaced
from tests.support.builders.btf_builder import BtfBuilder
from tests.support.host.backends import Interposer

SPEC = read_object(Path(__file__).parents[3] / "data/load_dummy_ops.bpf.o")
BTF_FD, MODULES_FD = 5, 77


def vmlinux() -> BtfBuilder:
    """A kernel that has none of the object's structs."""
    build = BtfBuilder()
    build.int("int", 4)
    return build


def operations_in(build: BtfBuilder) -> int:
    """The struct, with a member before the object's."""
    integer = 1
    function = build.ptr(build.func_proto(integer, [("state", build.ptr())]))
    return build.struct("bpf_dummy_ops", [("count", integer), ("test_1", function)])


def value_in(build: BtfBuilder, operations: int) -> int:
    """The type of the map's value."""
    common = build.struct("bpf_struct_ops_common_value", [("refcnt", 1)])
    return build.struct("bpf_struct_ops_bpf_dummy_ops", [("common", common), ("data", operations)])


def types_of(base: BtfBuilder, module: Btf) -> Any:
    """What `resolve` is given: a kernel with one module."""
    return SimpleNamespace(
        modules=SimpleNamespace(
            find=lambda name, kind: [
                ModuleType("bpf_testmod", module, type_id)
                for type_id in module.find(name, kind)
                if type_id >= len(base.btf())
            ],
            descriptor={"bpf_testmod": MODULES_FD}.__getitem__,
        )
    )


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> tuple[Any, int, int]:
    """What `resolve` is given, and the ids in the module's BTF."""
    base = vmlinux()
    build = BtfBuilder(base=base)
    operations = operations_in(build)
    value = value_in(build, operations)
    monkeypatch.setattr(struct_ops, "kernel_btf", base.btf)
    return types_of(base, build.btf()), operations, value


def test_ids_are_those_of_the_module(found: tuple[Any, int, int]) -> None:
    types, operations, value = found
    plan = struct_ops.resolve(SPEC, types)
    table = plan.maps["dummy"]
    assert (table.value_type_id, table.btf_fd) == (value, MODULES_FD)
    assert plan.targets["on_test_1"] == AttachTarget(operations, MODULES_FD)
    assert plan.spec.programs["on_test_1"].attach_type == 1  # its member there, after `count`
    assert table.functions == (("on_test_1", 16),)
    assert len(table.image) == 24


def test_the_struct_may_be_the_kernels_and_its_value_the_modules(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    base = vmlinux()
    operations = operations_in(base)
    build = BtfBuilder(base=base)
    value = value_in(build, operations)
    monkeypatch.setattr(struct_ops, "kernel_btf", base.btf)
    plan = struct_ops.resolve(SPEC, types_of(base, build.btf()))
    table = plan.maps["dummy"]
    assert (table.value_type_id, table.btf_fd) == (value, MODULES_FD)
    assert plan.targets["on_test_1"] == AttachTarget(operations, MODULES_FD)


def test_the_kernel_gets_the_btf_of_the_module_with_the_type(found: tuple[Any, int, int]) -> None:
    types, _, value = found
    table = struct_ops.resolve(SPEC, types).maps["dummy"]
    substitute = Interposer(lambda _call: errno.EINVAL)
    with backend_replaced(substitute), pytest.raises(KernelError):
        table.create(SPEC.maps["dummy"], BTF_FD)
    asked = substitute.calls[0]
    assert asked.command == "BPF_MAP_CREATE"
    assert asked.field("map_create", "btf_vmlinux_value_type_id") == value
    assert asked.field("map_create", "value_type_btf_obj_fd") == MODULES_FD
    assert asked.field("map_create", "map_flags") == BPF_F_VTYPE_BTF_OBJ_FD
    assert asked.field("map_create", "btf_fd") == BTF_FD
    assert asked.field("map_create", "value_size") == 24


def test_a_struct_that_no_module_has_is_named(found: tuple[Any, int, int]) -> None:
    types, _, _ = found
    types.modules.find = lambda _name, _kind: []
    assert not struct_ops.kernel_btf().find("bpf_dummy_ops", Kind.STRUCT)
    with pytest.raises(NotSupportedError, match="bpf_struct_ops_bpf_dummy_ops is not in its BTF"):
        struct_ops.resolve(SPEC, types)
