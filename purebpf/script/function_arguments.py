"""Arguments and results of kernel functions by BTF, for fentry and fexit."""

from __future__ import annotations

from purebpf.btf.types.kinds import Kind
from purebpf.script import tree
from purebpf.script.point import Point
from purebpf.script.script_error import ScriptError
from purebpf.script.tracepoint_fields import RecordField
from purebpf.script.types import Type
from purebpf.script.world import World

__all__ = ["function_fields", "raw_fields", "result_type"]


def _prototype(world: World, point: Point, node: tree.Node) -> tuple[list[tuple[str, int]], int]:
    name = point.name.rpartition(":")[2]
    kernel = world.kernel
    for type_id in kernel.btf.find(name, Kind.FUNC) if kernel is not None else ():
        assert kernel is not None
        described = kernel.btf.type(type_id)
        prototype = kernel.btf.type(described.type_id)  # type: ignore[union-attr]
        assert prototype.kind == Kind.FUNC_PROTO
        parameters = [(item.name, item.type_id) for item in prototype.params]
        return parameters, prototype.return_type
    message = f"the kernel's BTF does not have the function {name}"
    raise ScriptError(message, node.start, node.end)


def function_fields(world: World, point: Point, node: tree.Node) -> dict[str, RecordField]:
    """Return the parameters of a function, whose values are in the context.

    Raises:
        ScriptError: BTF does not have the function.
    """
    parameters, _ = _prototype(world, point, node)
    return _place(world, parameters)[0]


def _place(world: World, parameters: list[tuple[str, int]]) -> tuple[dict[str, RecordField], int]:
    """Return the fields of parameters, and the bytes of all.

    Each begins at a multiple of eight bytes; a struct that is passed by value has up to 16.
    Source: arch/x86/net/bpf_jit_comp.c, save_args().
    """
    kernel = world.kernel
    assert kernel is not None
    fields, place = {}, 0
    for name, type_id in parameters:
        type_ = kernel.type_of(type_id).in_space("kernel")
        fields[name] = RecordField(place, type_)
        place += 8 * max(1, -(-type_.size // 8)) if type_.kind == "struct" else 8
    return fields, place


def raw_fields(world: World, point: Point, node: tree.Node) -> dict[str, RecordField]:
    """Return the arguments of a raw tracepoint: each is a word of the context.

    BTF has them as the function `__traceiter_NAME`, whose first parameter is the kernel's own.
    Source: include/linux/tracepoint.h, __DECLARE_TRACE_COMMON.

    Raises:
        ScriptError: BTF does not have the tracepoint.
    """
    name = point.name.rpartition(":")[2]
    kernel = world.kernel
    for type_id in kernel.btf.find(f"__traceiter_{name}", Kind.FUNC) if kernel is not None else ():
        assert kernel is not None
        prototype = kernel.btf.type(kernel.btf.type(type_id).type_id)  # type: ignore[union-attr]
        return {
            item.name: RecordField(8 * index, kernel.type_of(item.type_id).in_space("kernel"))
            for index, item in enumerate(prototype.params[1:])  # type: ignore[union-attr]
        }
    message = f"the kernel's BTF does not have the raw tracepoint {name}"
    raise ScriptError(message, node.start, node.end)


def result_type(world: World, point: Point, node: tree.Node) -> tuple[Type, int]:
    """Return the type of a function's result, and its place in the context.

    Raises:
        ScriptError: BTF does not have the function.
    """
    parameters, result = _prototype(world, point, node)
    kernel = world.kernel
    assert kernel is not None
    return kernel.type_of(result).in_space("kernel"), _place(world, parameters)[1]
