"""Names of the kernel addresses in a recording, as far as the running kernel provably has them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from purebpf.errors import KernelError
from purebpf.loader.host.kernel_build_id import kernel_build_id, read_build_id
from purebpf.observe.symbols.symbolizer import Symbolizer
from purebpf.observe.symbols.vdso import VDSO, vdso_build_id
from purebpf.results.build.loaded_code import LoadedCode, module_name
from purebpf.results.model.spelling import printable
from purebpf.symbols.frame import Address, Frame, Reason, Unknown
from purebpf.symbols.kallsyms import addresses
from purebpf.symbols.recorded import Recorded
from purebpf.syscall import proc
from purebpf.tuples import NamedTuple
from purebpf.wire.perf_data import KERNEL, Feature
from purebpf.wire.perf_data_features import string
from purebpf.wire.perf_data_reader import PerfData
from purebpf.wire.perf_records import Mmap, Mmap2

__all__ = ["Origin", "RecordedKernel", "origin_of"]

Named = Frame | Unknown
_ADDRESS = 5
"""The column of /proc/modules with the address of a module's code."""


class Origin(NamedTuple):
    """The machine of a recording; "" for facts that it lacks.

    `build_ids` are the files' by path, the kernel's by `KERNEL`.
    """

    hostname: str
    release: str
    arch: str
    build_ids: Mapping[str, bytes]

    @property
    def kernel(self) -> bytes:
        """The build id of its kernel."""
        return self.build_ids.get(KERNEL, b"")

    @property
    def is_this_kernel(self) -> bool:
        """True if its kernel is the build that runs here."""
        return not self.why_not_this_kernel()[0]

    def why_not_this_kernel(self) -> tuple[Reason | None, str]:
        """The reason why the running kernel may not name its addresses, and a detail."""
        here = os.uname()
        if self.release and self.release != here.release:
            return Reason.OTHER_KERNEL, f"release {self.release}"
        if self.arch and self.arch != here.machine:
            return Reason.OTHER_KERNEL, f"machine {self.arch}"
        if not self.kernel:
            return Reason.UNPROVEN_KERNEL, ""
        if self.kernel != kernel_build_id():
            return Reason.OTHER_KERNEL, f"build id {self.kernel.hex()}"
        return None, ""

    @property
    def hint(self) -> str:
        """A sentence about a recording of another kernel; "" for one of this kernel."""
        reason, detail = self.why_not_this_kernel()
        if reason is not Reason.OTHER_KERNEL:
            return ""
        whose = printable(f"{self.hostname or 'another machine'} ({detail})")
        return (
            f"another kernel recorded this, that of {whose}: its functions have no names here. "
            f"Run `purebpf report` there, or `perf script` there and `purebpf convert` here"
        )

    def recorded(self) -> Recorded:
        """Return how far files of this machine may name its processes' code."""
        here = os.uname()
        mine = self.hostname, self.release, self.arch
        is_other = self.why_not_this_kernel()[0] is Reason.OTHER_KERNEL
        vdso = self.build_ids.get(VDSO, b"").hex()
        if not vdso and self.is_this_kernel:
            vdso = vdso_build_id()
        is_here = mine == (here.nodename, here.release, here.machine) and not is_other
        return Recorded(is_here, vdso)


def origin_of(file: PerfData, build_ids: Mapping[str, bytes]) -> Origin:
    """The machine of a file, given the build ids that it names."""
    facts = Feature.HOSTNAME, Feature.OSRELEASE, Feature.ARCH
    hostname, release, arch = (
        "" if packed is None else string(packed) for packed in map(file.feature, facts)
    )
    return Origin(hostname, release, arch, build_ids)


class RecordedKernel:
    """Names kernel stacks of a recording.

    The kernel's own functions have the names of the running kernel if it is the same build of the
    same release; another boot may have loaded it elsewhere (KASLR). Modules and BPF programs lie
    elsewhere after each boot: a module is looked up where it is now, if it is the same build, and
    BPF programs have the names that the recording itself gives them.

    Args:
        symbolizer: names addresses of the running kernel.
        origin: of the recording.
        mapping: the kernel's, if the recording has one.
        loaded: its modules and BPF programs.
    """

    def __init__(
        self,
        symbolizer: Symbolizer,
        origin: Origin,
        mapping: Mmap | Mmap2 | None,
        loaded: LoadedCode,
    ) -> None:
        self._symbolizer = symbolizer
        self._loaded = loaded
        if isinstance(mapping, Mmap2) and mapping.build_id and not origin.kernel:
            origin = origin._replace(build_ids={**origin.build_ids, KERNEL: mapping.build_id})
        self._why, self._detail = origin.why_not_this_kernel()
        self._moved = 0
        if self._why is None:
            moved = _distance(mapping)
            self._moved = moved or 0
            self._why = Reason.UNPLACED_KERNEL if moved is None else None
        self._modules = {} if self._why else _find_modules(loaded, origin.build_ids)

    def stack(self, call_chain: Sequence[int]) -> tuple[Named, ...]:
        """The names of a kernel stack, innermost address first."""
        shifts = [self._shift(at - (depth > 0)) for depth, at in enumerate(call_chain)]
        if self._why:
            names: list[Named] = [self._unknown(self._why, at, self._detail) for at in call_chain]
        else:
            moved = [at + shift for at, (_, shift) in zip(call_chain, shifts, strict=True)]
            names = self._symbolizer.kernel_stack(moved)
        return tuple(map(self._choose, range(len(names)), call_chain, names))

    def _shift(self, address: int) -> tuple[str, int]:
        """The module of an address, "" for the kernel itself, and how far it lies away here."""
        code = self._loaded.find(address)
        if code is None:
            return "", self._moved
        return code.module, self._modules.get(code.module, 0)

    def _choose(self, depth: int, at: int, name: Named) -> Named:
        """The name of an address, given the one that this kernel would give it."""
        code = self._loaded.find(at - (depth > 0))
        if code is not None and code.module not in self._loaded.modules:
            if not code.name:
                return self._unknown(Reason.NOT_RECORDED, at, "several programs had this address")
            return Frame(code.name, at - code.start, code.module, Address(at), "kernel")
        module = "kernel" if code is None else code.module
        if not self._why and (
            (code is not None and module not in self._modules)
            or (isinstance(name, Frame) and name.module != module)
        ):
            return self._unknown(Reason.NOT_RECORDED, at, "" if code is None else module)
        return name._replace(address=Address(at))

    def _unknown(self, reason: Reason, at: int, detail: str = "") -> Unknown:
        return Unknown(reason, "kernel", Address(at), "kernel", detail)


def _distance(mapping: Mmap | Mmap2 | None) -> int | None:
    """By how much the kernel's addresses here are greater; None where the recording lacks that."""
    symbol = "" if mapping is None else mapping.filename.removeprefix(KERNEL)
    if mapping is None or not symbol:
        return None
    try:
        places = addresses(proc.kallsyms(), [symbol])[symbol]
    except KernelError:
        return 0  # no address gets a name then
    if len(places) != 1:
        return None
    here = min(places)  # 0 for users who may not see it: no address gets a name then
    return here - mapping.pgoff if here else 0


def _find_modules(loaded: LoadedCode, build_ids: Mapping[str, bytes]) -> dict[str, int]:
    """By how much the addresses of each module are greater here, if it is the same build."""
    recorded = {module_name(name): build_id for name, build_id in build_ids.items()}
    places = {}
    for line in proc.modules().decode(errors="surrogateescape").splitlines():
        columns = line.split()
        name = columns[0] if columns else ""
        mapping = loaded.modules.get(name)
        if mapping is None or len(columns) <= _ADDRESS:
            continue
        build_id = mapping.build_id if isinstance(mapping, Mmap2) else b""
        build_id = build_id or recorded.get(name, b"")
        here = read_build_id(f"/sys/module/{name}/notes/.note.gnu.build-id")
        if build_id and build_id == here:
            places[name] = int(columns[_ADDRESS], 16) - mapping.addr
    return places
