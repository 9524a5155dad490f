"""Types of calls for addresses of networks, and for the order of bytes."""

from __future__ import annotations

from collections.abc import Mapping

from purebpf.script import tree
from purebpf.script.checking import Checking
from purebpf.script.constants import is_literal, wrap
from purebpf.script.functions.arguments import Infer, literal_argument, refuse
from purebpf.script.types import Type, integer, late, spell

__all__ = ["NETWORK"]


def _ntop(check: Checking, node: tree.Call) -> Type | None:
    types = [check.infer(item) for item in node.arguments]
    if any(type_ is None for type_ in types):
        return None
    address = types[-1]
    assert address is not None
    if address.kind not in ("int", "array", "string", "struct", "buffer"):
        raise refuse(node, f"ntop() expects an integer or array argument, got {spell(address)}")
    return late("inet")


def _bswap(check: Checking, node: tree.Call) -> Type | None:
    type_ = check.infer(node.arguments[0])
    if type_ is None:
        return None
    if type_.kind != "int":
        raise refuse(node, f"bswap() only supports integer arguments ({spell(type_)} provided)")
    size = type_.size
    value = check.constant(node.arguments[0])
    if value is not None and is_literal(node.arguments[0]):
        size = next(size for size in (1, 2, 4, 8) if value < 1 << 8 * size)
    if value is not None:
        data = wrap(value, size, False).to_bytes(size, "little")
        node.value = int.from_bytes(data, "big")
    return integer(size, False)


def _macaddr(check: Checking, node: tree.Call) -> Type | None:
    type_ = check.infer(node.arguments[0])
    if type_ is None:
        return None
    if type_.size < 6 or type_.kind not in ("array", "string", "int", "ptr"):
        raise refuse(node, "macaddr() argument must be a pointer or an array of 6 bytes")
    return late("mac")


def _pton(check: Checking, node: tree.Call) -> Type:
    from ipaddress import ip_address

    text = literal_argument(check, node, 0)
    try:
        address = ip_address(text)
    except ValueError:
        message = f"pton() expects an string argument of an IPv4/IPv6 address, got {text}"
        raise refuse(node, message) from None
    size = len(address.packed)
    return Type("array", size, count=size, items=(integer(1, False),))


NETWORK: Mapping[str, tuple[int, int, Infer]] = {
    "ntop": (1, 2, _ntop), "bswap": (1, 1, _bswap), "macaddr": (1, 1, _macaddr),
    "pton": (1, 1, _pton),
}  # fmt: skip
"""The least and the largest number of arguments, and the function that finds the type."""
