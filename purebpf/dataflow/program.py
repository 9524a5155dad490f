"""Claims for addresses of one file, each function decoded and followed once."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import IO

from elftools.common.exceptions import DWARFError, ELFError, ELFParseError

from purebpf.dataflow.claims import Claim, Unclaimed, claim_at, claim_before
from purebpf.dataflow.code import Code
from purebpf.dataflow.dwarf import DebugInfo, Function, NoDebugInfoError
from purebpf.dataflow.flow import Flow
from purebpf.dataflow.scope import DwarfScope
from purebpf.dataflow.split_dwarf import MissingPartError, OpenPart

__all__ = ["DWARF_FAULTS", "MissingPartError", "NoDebugInfoError", "Program"]

_LONGEST = 1 << 20
"""Bytes of a function; larger ones, of generated parsers, are not followed."""
DWARF_FAULTS = (
    *(ELFError, ELFParseError, DWARFError, ValueError, KeyError, IndexError, AttributeError),
    *(TypeError, NotImplementedError, AssertionError, OverflowError, RecursionError),
    struct.error,
)
"""pyelftools and the readers here raise any of these for damaged or unsupported DWARF."""


class Program:
    """The data that the code of one file touches.

    Args:
        stream: the file with the debugging information, open for reading.
        code: returns bytes of code by address and size, from the file that was mapped.
        open_part: opens the files of split DWARF by their paths.
        package: the path of the `.dwp` file, if the program has one.
        path: of the file with the debugging information.

    Raises:
        NoDebugInfoError: there are no types; the message says why.
    """

    def __init__(
        self,
        stream: IO[bytes],
        code: Callable[[int, int], bytes],
        open_part: OpenPart = lambda _: None,
        package: str = "",
        path: str = "",
    ) -> None:
        self._code = code
        self._flows: dict[int, tuple[Function, Flow] | str] = {}
        try:
            self._info = DebugInfo(stream, open_part, package, path)
        except NoDebugInfoError:
            raise
        except DWARF_FAULTS as error:
            raise NoDebugInfoError(f"DWARF that cannot be read: {error}") from None

    def claim(self, address: int, *, is_precise: bool) -> tuple[str, Claim | Unclaimed | str]:
        """Return the function at an address, and the data that a sample there belongs to.

        Args:
            address: as the file was linked.
            is_precise: the event points at the instruction that caused it. A timer's does not:
                its sample belongs to the instruction before.

        Returns:
            the name, "" where the DWARF has none; and the claim, or the reason why there is none.

        Raises:
            MissingPartError: the types are in a file that is missing now (split DWARF).
        """
        try:
            function = self._info.function(address)
            if function is None:
                return "", "no DWARF for this code"
            found = self._flow(function)
            claim = claim_at if is_precise else claim_before
            return function.name, claim(found, address)
        except MissingPartError:
            raise
        except NoDebugInfoError as error:
            return "", str(error)
        except DWARF_FAULTS as error:
            return "", f"DWARF that cannot be read: {type(error).__name__}"

    def _flow(self, function: Function) -> Flow:
        known = self._flows.get(function.start)
        if isinstance(known, str):
            raise NoDebugInfoError(known)
        if known is not None:
            return known[1]
        size = function.end - function.start
        if size > _LONGEST:
            raise NoDebugInfoError(f"functions of more than {_LONGEST >> 10} KiB")
        try:
            code = Code(self._code(function.start, size), function.start)
            flow = Flow(code, DwarfScope(self._info, function))
        except MissingPartError:
            raise
        except DWARF_FAULTS as error:
            reason = f"DWARF that cannot be read: {type(error).__name__}"
            self._flows[function.start] = reason
            raise NoDebugInfoError(reason) from None
        self._flows[function.start] = function, flow
        return flow
