"""IDs of maps, programs and links: lists them, and opens the objects that they belong to.

The order follows the numbers, which the kernel gives out in turn. Objects that come or go during
the walk may be missed; none is met twice.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from typing import TypeVar

from purebpf.errors import KernelError
from purebpf.syscall.descriptor import Descriptor

__all__ = ["open_id", "walk"]

_Opened = TypeVar("_Opened")


def open_id(get: Callable[[int], Descriptor], number: int, description: str) -> Descriptor:
    """A descriptor of the object that the kernel knows as `number`.

    Raises:
        KernelError: ENOENT, there is no such object (any more); EPERM, no CAP_SYS_ADMIN.
    """
    try:
        return get(number)
    except KernelError as error:
        if error.errno == errno.EPERM:
            from purebpf.loader.host.privilege import explain_eperm

            raise explain_eperm(error, description, "CAP_SYS_ADMIN") from None
        why = "no object has this ID" if error.errno == errno.ENOENT else ""
        raise KernelError(error.call, error.errno or 0, description, why=why) from None


def walk(after: Callable[[int], int], make: Callable[[int], _Opened]) -> Iterator[_Opened]:
    """Every object, opened: `after` gives the next number, `make` opens it.

    Raises:
        KernelError: EPERM, no CAP_SYS_ADMIN.
    """
    number = 0
    while True:
        try:
            number = after(number)
        except KernelError as error:
            if error.errno == errno.ENOENT:
                return
            if error.errno == errno.EPERM:
                from purebpf.loader.host.privilege import explain_eperm

                raise explain_eperm(error, "listing BPF objects", "CAP_SYS_ADMIN") from None
            raise
        try:
            handle = make(number)
        except KernelError as error:
            if error.errno == errno.ENOENT:  # it was closed since
                continue
            raise
        yield handle
