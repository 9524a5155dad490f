"""Types of the parts of a value: members, elements, and the target of a pointer."""

from __future__ import annotations

from purebpf.script import tree
from purebpf.script.script_error import ScriptError
from purebpf.script.types import CHAR, U64, Type, spell
from purebpf.similar import suggest

__all__ = ["element_type", "member_type", "offset_type", "target_type"]


def target_type(type_: Type, node: tree.Node) -> Type:
    """Return the type that a pointer points to.

    Raises:
        ScriptError: the type is not known.
    """
    target = type_.target
    if target.kind == "void" or (target.kind == "struct" and target.layout is None):
        message = f'Cannot resolve unknown type "{type_.name or "void"}"'
        raise ScriptError(message, node.start, node.end)
    return target.in_space(type_.space) if target.kind == "ptr" else target


def member_type(node: tree.Field, base: Type) -> Type:
    """Return the type of a field of a record, of a structure, or of the structure behind a pointer.

    Raises:
        ScriptError: the type has no such field.
    """
    if base.kind == "record":
        for name, item in zip(base.names, base.items, strict=True):
            if name == node.name:
                return item
        message = f"Record does not contain a field named '{node.name}'"
        raise ScriptError(message, node.start, node.end)
    space = base.space
    if base.kind == "ptr":
        base = target_type(base, node)
    if base.kind != "struct" or base.layout is None:
        message = f"Can not access field '{node.name}' on expression of type '{spell(base)}'"
        raise ScriptError(message, node.start, node.end)
    member = base.layout.member(node.name)
    if member is None:
        message = f"{base.name} does not contain a field named '{node.name}'"
        hint = suggest(node.name, [name for name, _ in base.layout.members()])
        raise ScriptError(message, node.start, node.end, hint)
    return member.type.in_space(space) if member.type.kind == "ptr" else member.type


def element_type(node: tree.Index, base: Type, index: Type, value: int | None) -> Type:
    """Return the type of an element of a tuple, an array or a string, or behind a pointer.

    Args:
        node: the expression, for errors.
        base: the type to the left of the brackets.
        index: the type between them.
        value: the value of the index; None if it is not a constant.

    Raises:
        ScriptError: there is no such element.
    """
    if base.kind == "tuple":
        if value is None or not 0 <= value < len(base.items):
            message = f"Invalid tuple index: {value}. Found {len(base.items)} elements in tuple."
            raise ScriptError(message, node.start, node.end)
        return base.items[value]
    if index.kind not in ("int", "bool"):
        message = "The array index operator [] only accepts integer indices."
        raise ScriptError(message, node.index.start, node.index.end)
    if base.kind in ("array", "string"):
        count = base.count if base.kind == "array" else base.size
        if value is not None and not 0 <= value < max(1, count):
            message = f"the index {value} is out of bounds for array of size {count}"
            raise ScriptError(message, node.start, node.end)
        return base.target if base.kind == "array" else CHAR
    if base.kind == "ptr":
        return target_type(base, node)
    message = "The array index operator [] can only be used on arrays and pointers, found "
    raise ScriptError(f"{message}{spell(base)}.", node.start, node.end)


def offset_type(node: tree.OffsetOf, type_: Type) -> Type:
    """Store the offset of a path of members in `node.value`, in bytes; return its type.

    Raises:
        ScriptError: a member does not exist.
    """
    offset = 0
    for name in node.path:
        member = type_.layout.member(name) if type_.layout is not None else None
        if member is None:
            message = f"'{spell(type_)}' does not contain a field named '{name}'"
            raise ScriptError(message, node.start, node.end)
        offset, type_ = offset + member.offset, member.type
    node.value = offset
    return U64
