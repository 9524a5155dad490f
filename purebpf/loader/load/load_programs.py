"""Fifth stage of a load: loads each program (BPF_PROG_LOAD); its BTF and maps exist by now.

A refused program is loaded again, with a log, which then decides:

- the verifier said something: `VerifierError`;
- the log is empty, so the kernel refused the call itself: once more, without the parts that this
  kernel does not know (names, function info, an optional attach type).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from contextlib import ExitStack, suppress

from purebpf.abi.bpf import bpf_attach_type
from purebpf.errors import KernelError
from purebpf.loader.host.fd_limits import NONE_LEFT
from purebpf.loader.load.load_call import LoadCall, Outcome, attempt
from purebpf.loader.load.prepare_spec import Prepared
from purebpf.loader.load.upload_result import Upload
from purebpf.loader.maps.map import Map
from purebpf.loader.programs.program import Program
from purebpf.relocate.linked_program import FUNC_INFO_SIZE, LINE_INFO_SIZE, LinkedProgram
from purebpf.spec import ProgramSpec
from purebpf.syscall import bpf
from purebpf.syscall.command import Field
from purebpf.syscall.descriptor import Descriptor
from purebpf.tuples import NamedTuple

__all__ = ["load_programs"]

_BOUND_TO_DEVICE = 1 << 6
"""BPF_F_XDP_DEV_BOUND_ONLY: without it, the card itself would have to run the program."""


class _Given(NamedTuple):
    """The objects that all programs refer to; `btf_fd` is None if they cannot."""

    prepared: Prepared
    btf_fd: int | None
    btf_problem: str
    map_fds: Mapping[str, int]
    constants: Mapping[str, int]
    fd_array: bytes
    log_level: int


def load_programs(
    prepared: Prepared,
    linked: Mapping[str, LinkedProgram],
    upload: Upload,
    maps: Mapping[str, Map],
    *,
    fd_array: bytes,
    owned: ExitStack,
    log_level: int,
) -> dict[str, Program]:
    """Load the object's programs, by name; `owned` closes them.

    Args:
        prepared: the object, and the attach targets of its programs.
        linked: the instructions of each.
        upload: the result for the object's BTF.
        maps: its maps.
        fd_array: the descriptors of modules with functions that it calls.
        owned: closes the programs.
        log_level: 0 for no log unless a program is refused; else as `Log`, for `Program.log`.

    Raises:
        VerifierError: the kernel refused a program; says which line decided, and why.
        KernelError: the call failed for another reason: ENOMEM, EMFILE.
    """
    fds = {name: bpf_map.fileno() for name, bpf_map in maps.items()}
    spec = prepared.spec
    constants = {
        name: fd for name, fd in fds.items() if spec.maps[name].section.startswith(".rodata")
    }
    btf_fd = None
    if upload.descriptor is not None and upload.functions:
        btf_fd = upload.descriptor.fd
    given = _Given(prepared, btf_fd, upload.problem, fds, constants, fd_array, log_level)
    programs = {}
    for name, program in spec.programs.items():
        if program.autoload:
            programs[name] = loaded = _load_program(program, linked[name], given)
            owned.callback(loaded.close)
    return programs


def _load_program(program: ProgramSpec, linked: LinkedProgram, given: _Given) -> Program:
    if program.sec_prefix.startswith("usdt"):
        program = _for_every_place(program)
    fields = _fields(program, linked, given)
    with ExitStack() as tables:  # of jumps, which only the program keeps
        map_fds = given.map_fds
        if linked.jump_tables:
            from purebpf.loader.load.jump_tables import jump_tables

            map_fds = {**map_fds, **tables.enter_context(jump_tables(linked))}
        call = LoadCall(
            type=program.type,
            code=linked.bind(map_fds),
            license=given.prepared.spec.license,
            fields=fields,
            name=program.name.encode(errors="replace"),
        )
        outcome = attempt(call, given.log_level)
        if isinstance(outcome.result, KernelError):
            outcome = _retry(program, linked, call, outcome, given)
    assert isinstance(outcome.result, Descriptor)
    if unused := given.constants.keys() - {reference.map for reference in linked.references}:
        _bind_constants(outcome.result, [given.constants[name] for name in unused])
    loaded = Program(
        outcome.result,
        program.name,
        program.type,
        program.attach_type,
        section=program.section,
        target=program.attach_target,
        log=outcome.log,
    )
    loaded.definition = program.definition
    loaded.btf = given.prepared.spec.btf
    return loaded


def _fields(program: ProgramSpec, linked: LinkedProgram, given: _Given) -> dict[str, Field]:
    """Return the fields of BPF_PROG_LOAD besides instructions, license and name."""
    fields: dict[str, Field] = {
        "prog_flags": program.flags,
        "expected_attach_type": program.attach_type,
    }
    if program.ifindex:
        flags = program.flags | _BOUND_TO_DEVICE
        fields |= {"prog_ifindex": program.ifindex, "prog_flags": flags}
    if program.signature:
        fields |= {"signature": program.signature, "signature_size": len(program.signature)}
        fields["keyring_id"] = program.keyring
    if target := given.prepared.attach_targets.get(program.name):
        fields |= {"attach_btf_id": target.type_id, "attach_btf_obj_fd": target.btf_fd}
    if given.fd_array:
        fields["fd_array"] = given.fd_array
    if given.btf_fd is not None and linked.func_info:
        info = linked.func_info
        if copies := given.prepared.copies.get(program.type):
            records = struct.iter_unpack("=II", info)
            info = b"".join(struct.pack("=II", at, copies.get(kind, kind)) for at, kind in records)
        fields |= {
            "prog_btf_fd": given.btf_fd,
            "func_info": info,
            "func_info_rec_size": FUNC_INFO_SIZE,
            "func_info_cnt": len(info) // FUNC_INFO_SIZE,
        }
        if linked.line_info:
            fields |= {
                "line_info": linked.line_info,
                "line_info_rec_size": LINE_INFO_SIZE,
                "line_info_cnt": len(linked.line_info) // LINE_INFO_SIZE,
            }
    return fields


def _retry(
    program: ProgramSpec, linked: LinkedProgram, call: LoadCall, outcome: Outcome, given: _Given
) -> Outcome:
    """Return the outcome without the parts that this kernel does not know; raise if it is a
    refusal as well.
    """
    if isinstance(outcome.result, KernelError) and outcome.result.errno in NONE_LEFT:
        raise outcome.result
    from purebpf.loader.load import load_refusal

    if load_refusal.is_about_the_call(outcome):
        reduced = load_refusal.leave_out_unknown(call, program)
        if reduced != call:
            outcome = attempt(reduced, given.log_level)
    if isinstance(outcome.result, KernelError):
        spec, problem = given.prepared.spec, given.btf_problem
        raise load_refusal.explain_refusal(program, linked, outcome, spec, problem) from None
    return outcome


def _bind_constants(program: Descriptor, constants: Iterable[int]) -> None:
    """Keep .rodata with a program that does not use it, as libbpf does.

    BPF_PROG_BIND_MAP (Linux 5.10, commit ef15314aa5de).

    So the object's metadata there (`bpf_metadata_...`) is reachable from the program: `bpftool
    prog` prints it.
    """
    for fd in constants:
        with suppress(KernelError):
            bpf.prog_bind_map(program.fileno(), fd)


def _for_every_place(program: ProgramSpec) -> ProgramSpec:
    """A USDT program to be attached to all places of a probe at once, where the kernel can."""
    from purebpf.loader.features.features import have_uprobe_multi

    if not have_uprobe_multi():
        return program
    return program._replace(attach_type=bpf_attach_type.BPF_TRACE_UPROBE_MULTI)
