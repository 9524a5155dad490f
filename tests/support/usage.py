"""Which features of the kernel the tests of this process have made use of.

What `purebpf.loader.features.features` asks does not count, nor does what other processes do: a
feature is used when a call of a test that needs it came through.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
from pathlib import Path

from purebpf.abi.bpf import BPF_F_MMAPABLE, bpf_attach_type, bpf_cmd, bpf_map_type, bpf_prog_type
from purebpf.abi.helpers import bpf_func_id
from purebpf.abi.instruction import CALL, unpack
from purebpf.abi.layouts import ATTR
from purebpf.btf.types.kinds import Func, Linkage
from purebpf.btf.types.parse import Btf
from purebpf.loader.features import features
from purebpf.syscall.backend import Attr, KernelBackend
from tests.support import probes

__all__ = ["Usage"]

_PROGRAM_NAMES = "program names"
_ASKING = ("purebpf.loader.features.features", "purebpf.loader.features.attach_features")
_COOKIES = "helper get_attach_cookie in program type PERF_EVENT"
_INSTRUCTION = 8


class Usage:
    """The names of features used so far, and of the needs that tests ran with.

    Args:
        place: the file that `write` writes, for tests.vm.results.
    """

    def __init__(self, place: Path) -> None:
        self._place = place
        self.names: set[str] = set()
        self._readers = {
            bpf_cmd.BPF_MAP_CREATE: self._map,
            bpf_cmd.BPF_PROG_LOAD: self._program,
            bpf_cmd.BPF_BTF_LOAD: self._btf,
            bpf_cmd.BPF_LINK_CREATE: self._link,
            bpf_cmd.BPF_MAP_FREEZE: lambda _: self.names.add("frozen maps"),
            bpf_cmd.BPF_ENABLE_STATS: lambda _: self.names.add("run time statistics"),
            bpf_cmd.BPF_MAP_LOOKUP_BATCH: self._batch,
            bpf_cmd.BPF_MAP_LOOKUP_AND_DELETE_BATCH: self._batch,
            bpf_cmd.BPF_MAP_UPDATE_BATCH: self._batch,
            bpf_cmd.BPF_MAP_DELETE_BATCH: self._batch,
        }

    def watch(self) -> None:
        """Look at every call of this process to bpf(2) from now on."""
        ask = KernelBackend.bpf

        def bpf(substitute: KernelBackend, command: int, attr: Attr, size: int) -> int:
            result = ask(substitute, command, attr, size)
            reader = self._readers.get(command)
            if reader is not None and result >= 0 and not _is_probe():
                reader(ctypes.string_at(attr, size))
            return result

        KernelBackend.bpf = bpf  # type: ignore[method-assign]

    def write(self) -> None:
        """Ask the kernel what it has, and write that with what was used."""
        features.forget()
        answers = {name: not probes.missing(name) for name in probes.KERNEL}
        answers |= {found.name: found.supported for found in features.all_features()}
        used = sorted(self.names & answers.keys())
        self._place.write_text(
            json.dumps({"release": os.uname().release, "features": answers, "used": used})
        )

    def _map(self, attr: bytes) -> None:
        fields = ATTR["map_create"].unpack(attr)
        self.names.add(_named("map type", bpf_map_type(fields["map_type"])))
        if int(fields["map_flags"]) & BPF_F_MMAPABLE:
            self.names.add("mmapable arrays")

    def _program(self, attr: bytes) -> None:
        fields = ATTR["prog_load"].unpack(attr)
        kind = bpf_prog_type(fields["prog_type"])
        self.names.add(_named("program type", kind))
        if any(bytes(fields["prog_name"])):  # type: ignore[arg-type]
            self.names.add(_PROGRAM_NAMES)
        if fields.get("func_info_cnt"):
            self.names.add("function info")
        if kind == bpf_prog_type.BPF_PROG_TYPE_PERF_EVENT and _COOKIES not in self.names:
            size = int(fields["insn_cnt"]) * _INSTRUCTION
            code = unpack(ctypes.string_at(int(fields["insns"]), size))
            wanted = (CALL, 0, bpf_func_id.BPF_FUNC_get_attach_cookie)
            if any((each.opcode, each.src, each.imm) == wanted for each in code):
                self.names.add(_COOKIES)

    def _btf(self, attr: bytes) -> None:
        fields = ATTR["btf_load"].unpack(attr)
        types = Btf(ctypes.string_at(int(fields["btf"]), int(fields["btf_size"])))
        for type_id in range(1, len(types)):
            self.names.add(f"BTF kind {types.kind(type_id).name}")
            found = types.type(type_id)
            if isinstance(found, Func) and found.linkage is Linkage.GLOBAL:
                self.names.add("global functions")

    def _link(self, attr: bytes) -> None:
        fields = ATTR["link_create"].unpack(attr)
        if fields["attach_type"] == bpf_attach_type.BPF_PERF_EVENT:
            self.names.add("links of perf events")

    def _batch(self, _attr: bytes) -> None:
        self.names.add("batch operations")


def _named(what: str, kind: bpf_map_type | bpf_prog_type) -> str:
    """As `features` calls it."""
    return f"{what} {kind.name.partition('_TYPE_')[2].removesuffix('_DEPRECATED')}"


def _is_probe() -> bool:
    """Whether `features` is asking."""
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_globals.get("__name__") in _ASKING:
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False
