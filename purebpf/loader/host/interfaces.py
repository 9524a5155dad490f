"""Network interfaces, by name or index, and help with their spelling."""

from __future__ import annotations

from purebpf.syscall import interfaces
from purebpf.tuples import NamedTuple

__all__ = ["Interface", "find_interface"]


class Interface(NamedTuple):
    """An interface of this process's network namespace."""

    name: str
    ifindex: int

    def __str__(self) -> str:
        return self.name


def find_interface(target: str | int | None) -> Interface:
    """The interface of that name or index.

    Raises:
        TypeError: None.
        ValueError: there is no such interface here; lists those with a similar name.
    """
    if target is None:
        raise TypeError("target required: the name or index of a network interface")
    if isinstance(target, int):
        interface = Interface(interfaces.name_of(target), target)
    else:
        interface = Interface(target, interfaces.index_of(target))
    if interface.name and interface.ifindex:
        return interface
    from difflib import get_close_matches

    interface_names = interfaces.names()
    close = get_close_matches(str(target), interface_names) or interface_names
    raise ValueError(f"unknown network interface {target!r}; known: {', '.join(close)}")
