"""The parts of an object's BTF that the kernel accepted."""

from __future__ import annotations

import errno
from types import TracebackType
from typing import NoReturn, Self, SupportsIndex

from purebpf.closable import refuse_copy
from purebpf.syscall.descriptor import Descriptor
from purebpf.tuples import NamedTuple

__all__ = ["UNRELATED", "Upload"]

UNRELATED = frozenset({errno.ENOMEM, errno.EMFILE, errno.ENFILE})
"""Errors of the machine; any other says something about the BTF, or that there is none for us."""


class Upload(NamedTuple):
    """The result for an object's BTF.

    Attributes:
        descriptor: the BTF in the kernel, or None when the kernel takes none of it: maps then have
            no types, and programs no function or line info.
        functions: whether it still describes functions, so that programs can refer to them.
        problem: the kernel's complaint, or "".
    """

    descriptor: Descriptor | None
    functions: bool
    problem: str

    def __reduce_ex__(self, protocol: SupportsIndex, /) -> NoReturn:
        refuse_copy(self, protocol)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self.descriptor is not None:
            self.descriptor.close()
