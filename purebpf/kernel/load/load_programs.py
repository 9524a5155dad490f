"""An object's programs: everything that BPF_PROG_LOAD wants to know about each.

A refused program is asked about again, with a log, which then decides:

- the verifier said something: `VerifierError`;
- it said nothing, so the kernel did not like the call itself: once more, without what this kernel
  turns out not to know (names, function info, an optional attach type).
"""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import TYPE_CHECKING

from purebpf.abi.bpf import bpf_attach_type
from purebpf.errors import KernelError, NotSupportedError
from purebpf.kernel.host.fd_limits import NONE_LEFT
from purebpf.kernel.load.btf_upload import Upload
from purebpf.kernel.load.kernel_types import KernelTypes
from purebpf.kernel.load.load_call import LoadCall, Outcome, load
from purebpf.kernel.programs.program import Program
from purebpf.relocate.linked_program import FUNC_INFO_SIZE, LINE_INFO_SIZE, LinkedProgram
from purebpf.spec import ObjectSpec, ProgramSpec
from purebpf.syscall import bpf
from purebpf.syscall.command import Field
from purebpf.syscall.descriptor import Descriptor

if TYPE_CHECKING:
    from purebpf.kernel.programs.attach_target import AttachTarget

__all__ = ["ProgramLoader"]

_NAME_LENGTH = 15  # BPF_OBJ_NAME_LEN less the NUL


class ProgramLoader:
    """Loads the programs of one object, whose BTF and maps are in the kernel already.

    Args:
        spec: the object.
        upload: what became of its BTF.
        map_fds: the descriptor of each map, by name.
        types: this kernel's, with those of its modules.
        log_level: 0 for no log unless a program is refused; else as `Log`, for `Program.log`.
        targets: what struct_ops programs are for.
    """

    def __init__(
        self,
        spec: ObjectSpec,
        upload: Upload,
        map_fds: Mapping[str, int],
        types: KernelTypes,
        *,
        log_level: int = 0,
        targets: Mapping[str, AttachTarget] = MappingProxyType({}),
    ) -> None:
        self._spec = spec
        self._upload = upload
        self._map_fds = map_fds
        self._types = types
        self._log_level = log_level
        self._targets = targets

    def load(self, program: ProgramSpec, linked: LinkedProgram) -> Program:
        """Load one program.

        Raises:
            VerifierError: the kernel refused the program; says which line decided, and why.
            NotSupportedError: its section says nothing that purebpf or this kernel knows.
            KernelError: the call failed for reasons of its own: ENOMEM, EMFILE.
        """
        if not program.type:
            reason = f"section {program.section!r} is not in libbpf's table of program types"
            raise NotSupportedError(f"program {program.name!r}", reason)
        if program.sec_prefix.startswith("usdt"):
            program = _for_every_place(program)
        if linked.jump_tables:
            from purebpf.kernel.load.jump_tables import jump_tables

            with jump_tables(linked) as tables:
                outcome = self._issue(program, linked, {**self._map_fds, **tables})
        else:
            outcome = self._issue(program, linked, self._map_fds)
        assert isinstance(outcome.result, Descriptor)
        self._bind_constants(outcome.result, linked)
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
        loaded.btf = self._spec.btf
        return loaded

    def _bind_constants(self, program: Descriptor, linked: LinkedProgram) -> None:
        """Keep .rodata with a program that does not use it, as libbpf does (Linux 5.10).

        So what an object says about itself there (`bpf_metadata_...`) is found from the program:
        `bpftool prog` shows it.
        """
        for name, fd in self._map_fds.items():
            if self._spec.maps[name].section.startswith(".rodata") and name not in linked.maps:
                with suppress(KernelError):
                    bpf.prog_bind_map(program.fileno(), fd)

    def _issue(
        self, program: ProgramSpec, linked: LinkedProgram, map_fds: Mapping[str, int]
    ) -> Outcome:
        """What came of it; raises when the kernel refuses, also the second time."""
        call = LoadCall(
            type=program.type,
            code=linked.bind(map_fds),
            license=self._spec.license,
            fields=self._fields(program, linked),
            name=_kernel_name(program.name),
        )
        outcome = load(call, self._log_level)
        if isinstance(outcome.result, KernelError):
            return self._retried(program, linked, call, outcome)
        return outcome

    def _retried(
        self, program: ProgramSpec, linked: LinkedProgram, call: LoadCall, outcome: Outcome
    ) -> Outcome:
        """The outcome without what this kernel does not know; raises if that is a refusal too."""
        if isinstance(outcome.result, KernelError) and outcome.result.errno in NONE_LEFT:
            raise outcome.result
        from purebpf.kernel.load import load_refusal

        if load_refusal.is_about_the_call(outcome):
            reduced = load_refusal.reduced(call, program)
            if reduced != call:
                outcome = load(reduced, self._log_level)
        if isinstance(outcome.result, KernelError):
            btf, problem = self._spec.btf, self._upload.problem
            raise load_refusal.explained(program, linked, outcome, btf, problem) from None
        return outcome

    def _fields(self, program: ProgramSpec, linked: LinkedProgram) -> dict[str, Field]:
        fields: dict[str, Field] = {
            "prog_flags": program.flags,
            "expected_attach_type": program.attach_type,
            **self._attach_target(program),
        }
        if fd_array := self._types.fd_array:
            fields["fd_array"] = fd_array
        if self._upload.descriptor is not None and self._upload.functions and linked.func_info:
            fields |= {
                "prog_btf_fd": self._upload.descriptor.fileno(),
                "func_info": self._function_info(program, linked.func_info),
                "func_info_rec_size": FUNC_INFO_SIZE,
                "func_info_cnt": len(linked.func_info) // FUNC_INFO_SIZE,
            }
            if linked.line_info:
                fields |= {
                    "line_info": linked.line_info,
                    "line_info_rec_size": LINE_INFO_SIZE,
                    "line_info_cnt": len(linked.line_info) // LINE_INFO_SIZE,
                }
        return fields

    def _function_info(self, program: ProgramSpec, info: bytes) -> bytes:
        """The functions by type, or by that of the copy made for programs of this type."""
        copies = self._upload.copies.get(program.type)
        if not copies:
            return info
        records = struct.iter_unpack("=II", info)
        return b"".join(struct.pack("=II", at, copies.get(kind, kind)) for at, kind in records)

    def _attach_target(self, program: ProgramSpec) -> dict[str, Field]:
        """The type or function that the program is for, as the kernel's BTF has it, if any."""
        found = self._targets.get(program.name)
        if found is None:
            definition = program.definition
            if definition is None:
                return {}
            if definition.attach == "tracing_multi":
                return self._module_of(program)
            if definition.btf_prefix is None:
                return {}
            from purebpf.kernel.programs.attach_target import attach_target

            found = attach_target(program, self._types.modules)
        return {"attach_btf_id": found.type_id, "attach_btf_obj_fd": found.btf_fd}

    def _module_of(self, program: ProgramSpec) -> dict[str, Field]:
        """Whose functions a program for many is for: vmlinux's, or `module:pattern`'s."""
        module = program.attach_target.rpartition(":")[0]
        if not module:
            return {}
        return {"attach_btf_obj_fd": self._types.modules.descriptor(module)}


def _for_every_place(program: ProgramSpec) -> ProgramSpec:
    """A USDT program to be attached to all places of a probe at once, where the kernel can."""
    from purebpf.kernel.features.features import have_uprobe_multi

    if not have_uprobe_multi():
        return program
    return program._replace(attach_type=bpf_attach_type.BPF_TRACE_UPROBE_MULTI)


def _kernel_name(name: str) -> bytes:
    """A name the kernel accepts: at most 15 of [A-Za-z0-9_.]."""
    return re.sub(r"[^A-Za-z0-9_.]", "_", name)[:_NAME_LENGTH].encode()
