"""The names that `latency` takes: functions of the kernel, and functions and probes of files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from purebpf.cli.listing import fitting
from purebpf.errors import KernelError, NotSupportedError
from purebpf.loader.attach._common.probe_place import find_file, open_image
from purebpf.loader.attach.kprobe_multi import traceable
from purebpf.symbols.usdt import usdt_probes
from purebpf.syscall import tracefs
from purebpf.tools.latency.functions import readable_names

__all__ = ["list_functions"]


def list_functions(pattern: str) -> Iterator[tuple[str, str]]:
    """Yield the kernel's functions that fit; of `FILE:PATTERN`, the functions and static probes of
    the file; of `CATEGORY:PATTERN`, tracepoints.

    Raises:
        AttachError: there is no such file.
        FormatError: it is not an ELF file.
        NotSupportedError: the kernel does not list its functions.
    """
    file, colon, wanted = pattern.partition(":")
    if not colon:
        yield from fitting(((name, "kernel") for name in _kernel_functions()), pattern)
        return
    if "/" not in file and (points := [*fitting(_tracepoints(), pattern)]):
        yield from points
        return
    with open_image(find_file(file, f"the functions of {file}")) as (image, _):
        functions = ((name, "function") for name in readable_names(image))
        probes = {f"{probe.provider}:{probe.name}" for probe in usdt_probes(image)}
        static = ((name, "static probe, for -e") for name in sorted(probes))
        for names in (functions, static):
            yield from ((f"{file}:{name}", kind) for name, kind in fitting(names, wanted))


def _kernel_functions() -> list[str]:
    try:
        return sorted(traceable())
    except (KernelError, NotSupportedError) as error:
        raise NotSupportedError(
            "the kernel does not list its functions",
            f"{error}. `latency -l 'libc:*alloc*'` lists the functions of a file",
        ) from error


def _tracepoints() -> Iterator[tuple[str, str]]:
    """Yield the tracepoints of this kernel; none if they cannot be read."""
    with suppress(KernelError, NotSupportedError):
        for name in tracefs.tracepoint_names():
            yield name, "tracepoint, for -e"
