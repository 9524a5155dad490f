"""Attach to the static probes that a program or library was built with (USDT, `DTRACE_PROBE`).

One multi-uprobe for all places of a probe (Linux 6.9, where it also filters by process:
commit 46ba0e49b642), else a uprobe for each. The program reads arguments with `bpf/usdt.bpf.h`;
this module fills its maps.
"""

from __future__ import annotations

import errno
import os
from array import array
from contextlib import ExitStack

from purebpf.abi.bpf import bpf_attach_type
from purebpf.errors import AttachError, KernelError, NotSupportedError
from purebpf.files.regular_file import Identity, opened_same
from purebpf.loader.attach._common.errors import attach_error
from purebpf.loader.attach._common.options import check_cookie, target_of
from purebpf.loader.attach._common.probe_place import find_file, open_image
from purebpf.loader.attach._common.usdt_specs import UsdtSpecs
from purebpf.loader.attach.perf_event import owning_link
from purebpf.loader.attach.uprobe_multi import process_of
from purebpf.loader.perf.probe import Probe
from purebpf.loader.perf.probe_event import open_probe
from purebpf.loader.programs.link import Link
from purebpf.loader.programs.program import Program
from purebpf.symbols.elf_image import ET_DYN, ElfImage
from purebpf.symbols.elf_names import addresses_of_variables
from purebpf.symbols.proc_maps import parse_maps
from purebpf.symbols.usdt import UsdtProbe, usdt_probes
from purebpf.symbols.usdt_arguments import (
    Argument,
    UnknownArgument,
    parse_arguments,
    with_addresses,
)
from purebpf.syscall import bpf, proc
from purebpf.syscall.descriptor import Descriptor
from purebpf.tuples import NamedTuple

__all__ = ["UsdtLink", "UsdtTarget", "attach", "find_probe", "resolve_addresses"]

_EVERY = -1


class UsdtTarget(NamedTuple):
    """The target: the probes of one name in a file, and a process.

    `opened` leads to the file while it is probed, whatever is at `path` by then.
    """

    path: str
    identity: Identity
    probes: list[UsdtProbe]
    machine: int
    movable: bool
    pid: int
    opened: str = ""


class UsdtLink(Link):
    """A program at every place of a probe: one bpf_link (Linux 6.9), or one for each place."""

    def __init__(
        self, description: str, parts: list[Link], link: Descriptor | None, cleanup: ExitStack
    ) -> None:
        self._parts = parts
        self._cleanup = cleanup
        super().__init__(description, link=link)

    def fileno(self) -> int:
        """The number of the bpf_link's descriptor.

        Raises:
            NotSupportedError: there is one for each place, as before Linux 6.9.
            ValueError: it is closed.
        """
        if self._parts and not self.closed:
            reason = f"on this kernel it is {len(self._parts)} uprobes, each with its own"
            raise NotSupportedError(f"the descriptor of {self.what}", reason)
        return super().fileno()

    def close(self) -> None:
        """Detach from every place. A pinned link stays, with its descriptions."""
        is_pinned = bool(self._pins)
        super().close()
        while self._parts:
            self._parts.pop().close()
        if is_pinned or not self._owner_process.is_here:
            self._cleanup.pop_all()
        self._cleanup.close()


def attach(
    program: Program, target: str | None = None, *, pid: int = _EVERY, cookie: int = 0
) -> UsdtLink:
    """Run `program` at every place of a static probe.

    Args:
        program: a `usdt` program that includes `bpf/usdt.bpf.h`.
        target: `"file:provider:name"`, as `"libc.so.6:libc:setjmp"`; the file as for `uprobe`. By
            default, the target in the program's section.
        pid: only in this process, 0 for our own; -1 for every one.
        cookie: the value of bpf_usdt_cookie().

    Raises:
        TypeError: no target, and none in the section name.
        ValueError: a target that is none; a cookie of more than 64 bits, a negative `pid`; the
            program is closed.
        AttachError: ENOENT, no such file or probe; ESRCH, no such process, or not in it.
        FormatError: the file is not an ELF file, or its notes are damaged.
        NotSupportedError: an argument that cannot be described, and that the program may read; a
            32-bit file; a library without `pid` before Linux 5.15; an object without the header.
    """
    where = target_of(program, target, "target required: 'file:provider:name'")
    description = f"program {program.name!r} at probe {where}"
    _parts(where)  # a section without a provider is another error than an object without the header
    if not isinstance(program.usdt, UsdtSpecs):
        reason = f"program {program.name!r} was not loaded from an object with bpf/usdt.bpf.h"
        raise NotSupportedError(description, reason)
    usdt_target = find_probe(where, description, pid)
    usdt_target = usdt_target._replace(pid=os.getpid() if pid == 0 else pid)
    with (
        opened_same(usdt_target.path, usdt_target.identity, description) as path,
        ExitStack() as cleanup,
    ):
        usdt_target = usdt_target._replace(opened=path)
        numbers = _describe(program, usdt_target, check_cookie(cookie), description, cleanup)
        if program.attach_type == bpf_attach_type.BPF_TRACE_UPROBE_MULTI:
            link = _link_all(program, usdt_target, numbers, description)
            return UsdtLink(description, [], link, cleanup.pop_all())
        parts = _link_each(program, usdt_target, numbers, description, cleanup)
        return UsdtLink(description, parts, None, cleanup.pop_all())


def _parts(where: str) -> tuple[str, str, str]:
    file, _, rest = where.rpartition(":")
    file, _, provider = file.rpartition(":")
    if not file or not provider or not rest:
        raise ValueError(f"{where!r} is not a USDT probe: expected 'file:provider:name'")
    return file, provider, rest


def find_probe(where: str, description: str, pid: int = _EVERY) -> UsdtTarget:
    """The probes that `"file:provider:name"` means, in every process; `description` is for errors.

    `pid` as for `probe_place.find_file`.

    Raises:
        ValueError: a target that is none.
        AttachError: ENOENT, no such file or probe.
        FormatError: the file is not an ELF file, or its notes are damaged.
        NotSupportedError: a 32-bit file.
    """
    file, provider, name = _parts(where)
    path = find_file(file, description, pid)
    with open_image(path) as (image, identity):
        if not image.is64:
            raise NotSupportedError(
                description,
                f"{path} is a 32-bit file; purebpf reads the registers of 64-bit files only",
            )
        left_out: dict[str, str] = {}
        every = list(usdt_probes(image, left_out))
        probes = [probe for probe in every if (probe.provider, probe.name) == (provider, name)]
        if not probes:
            probe_names = sorted({f"{probe.provider}:{probe.name}" for probe in every})
            has = f"it has {', '.join(probe_names)}" if probe_names else "it has none"
            lacks = "does not have this probe"
            if reason := left_out.get(f"{provider}:{name}"):
                lacks = f"has no code for this probe: {reason}"
            raise AttachError("usdt", errno.ENOENT, description, why=f"{path} {lacks}; {has}")
        probes = resolve_addresses(image, probes)
        return UsdtTarget(path, identity, probes, image.machine, image.type == ET_DYN, _EVERY)


def resolve_addresses(image: ElfImage, probes: list[UsdtProbe]) -> list[UsdtProbe]:
    """Return the probes with numbers for the variables that their arguments name."""
    names: set[str] = set()
    for probe in probes:
        with_addresses(probe.arguments, probe.address, names.add)
    if not names:
        return probes
    find = addresses_of_variables(image, names).get
    return [
        probe._replace(arguments=with_addresses(probe.arguments, probe.address, find))
        for probe in probes
    ]


def _describe(
    program: Program, target: UsdtTarget, cookie: int, description: str, cleanup: ExitStack
) -> list[int]:
    """The number of each probe's description; places with the same arguments share one."""
    specs = program.usdt
    assert isinstance(specs, UsdtSpecs)
    numbers: dict[str, int] = {}
    cleanup.callback(lambda: specs.give_back(numbers.values()))
    for probe in target.probes:
        if probe.arguments not in numbers:
            try:
                arguments = parse_arguments(probe.arguments, target.machine)
            except ValueError as error:
                raise NotSupportedError(
                    description, f"cannot read its arguments {probe.arguments!r}: {error}"
                ) from None
            _check_arguments(program, specs, arguments, description)
            numbers[probe.arguments] = specs.add(arguments, cookie)
    return [numbers[probe.arguments] for probe in target.probes]


def _check_arguments(
    program: Program,
    specs: UsdtSpecs,
    arguments: tuple[Argument | UnknownArgument, ...],
    description: str,
) -> None:
    """Refuse an argument that the program may read, and that cannot be described."""
    reads = program.usdt_arguments
    for number, argument in enumerate(arguments):
        problem = specs.problem_of(argument)
        if not problem or (reads is not None and number not in reads):
            continue
        text = f" {argument.text!r}" if isinstance(argument, UnknownArgument) else ""
        may = "reads" if reads is not None else "may read"
        reason = f"the program {may} argument {number + 1}{text}: {problem}"
        raise NotSupportedError(description, reason)


def _link_all(
    program: Program, target: UsdtTarget, numbers: list[int], description: str
) -> Descriptor:
    probes = target.probes
    try:
        return bpf.link_create(
            bpf_attach_type.BPF_TRACE_UPROBE_MULTI,
            prog_fd=program.fileno(),
            uprobe_multi_path=os.fsencode(target.opened) + b"\0",
            uprobe_multi_offsets=array("Q", [probe.offset for probe in probes]).tobytes(),
            uprobe_multi_ref_ctr_offsets=array(
                "Q", [probe.semaphore for probe in probes]
            ).tobytes(),
            uprobe_multi_cookies=array("Q", numbers).tobytes(),
            uprobe_multi_cnt=len(probes),
            uprobe_multi_pid=process_of(target.pid, description),
        )
    except KernelError as error:
        raise _explain_refusal(error, target, description) from None


def _link_each(
    program: Program, target: UsdtTarget, numbers: list[int], description: str, cleanup: ExitStack
) -> list[Link]:
    from purebpf.loader.features.features import have_attach_cookie

    has_cookies = bool(have_attach_cookie())
    if not has_cookies:
        assert isinstance(program.usdt, UsdtSpecs)
        addresses = _addresses(target, description)
        cleanup.callback(program.usdt.give_back, (), addresses)
        for address, number in zip(addresses, numbers, strict=True):
            program.usdt.put_place(address, number)
    with ExitStack() as stack:
        parts: list[Link] = []
        for probe, number in zip(target.probes, numbers, strict=True):
            place = Probe(
                "uprobe",
                os.fsencode(target.opened),
                probe.offset,
                pid=target.pid,
                semaphore=probe.semaphore,
            )
            try:
                event = open_probe(place)
            except KernelError as error:
                raise _explain_refusal(error, target, description) from None
            cookie = number if has_cookies else 0
            parts.append(
                stack.enter_context(owning_link(program, event, description, cookie=cookie))
            )
        stack.pop_all()
    return parts


def _addresses(target: UsdtTarget, description: str) -> list[int]:
    """Return the probes' addresses in memory: as linked, or in the process's mapping of the
    library.
    """
    if not target.movable:
        return [usdt_probe.address for usdt_probe in target.probes]
    if target.pid < 0:
        reason = (
            "the library has another address in each process, and this kernel does not have "
            "attach cookies; use pid="
        )
        raise NotSupportedError(f"{description} in every process", reason)
    text = proc.maps(target.pid)
    if text is None:
        raise AttachError("usdt", errno.ESRCH, description, why=_no_process(target))
    _, inode, _ = target.identity
    mappings = [entry for entry in parse_maps(text) if entry.file.inode == inode]
    addresses = []
    for probe in target.probes:
        for mapping in mappings:
            if 0 <= probe.offset - mapping.offset < mapping.end - mapping.start:
                addresses.append(mapping.start + probe.offset - mapping.offset)
                break
        else:
            why = f"process {target.pid} has not mapped {target.path}"
            raise AttachError("usdt", errno.ESRCH, description, why=why)
    return addresses


def _explain_refusal(error: KernelError, target: UsdtTarget, description: str) -> AttachError:
    reasons = {
        errno.EINVAL: "the address is not code of the file, or the semaphore is not data",
        errno.ESRCH: _no_process(target),
    }
    return attach_error(error, description, reasons)


def _no_process(target: UsdtTarget) -> str:
    return f"no process has PID {target.pid}"
