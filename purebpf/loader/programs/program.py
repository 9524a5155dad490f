"""A loaded program: attach it, run it once, ask about it."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Self

from purebpf.abi.bpf import bpf_prog_type
from purebpf.abi.layouts import BPF_PROG_INFO
from purebpf.abi.names import member_name
from purebpf.closable import Closing
from purebpf.loader.host import pins
from purebpf.syscall import bpf
from purebpf.syscall.descriptor import Descriptor
from purebpf.tuples import NamedTuple

if TYPE_CHECKING:
    from purebpf.abi.sections import SecDef
    from purebpf.btf.types.parse import Btf
    from purebpf.loader.attach.query import Attached, Target
    from purebpf.loader.programs.link import Link
    from purebpf.loader.programs.test_run import TestRun

__all__ = ["Program", "ProgramInfo"]

_U32 = 4


class ProgramInfo(NamedTuple):
    """The kernel's description of a program (struct bpf_prog_info).

    Numbers that an older kernel does not report are 0. `run_time_ns` and `run_cnt` grow only
    while run time statistics are on (`purebpf.loader.programs.statistics.run_time`).

    Attributes:
        id: its number, as in `bpftool prog`.
        type: enum bpf_prog_type.
        tag: hash of the instructions, in hexadecimal.
        name: at most 15 characters.
        load_time_ns: when it was loaded, in nanoseconds of CLOCK_BOOTTIME.
        uid: who loaded it.
        gpl_compatible: whether its license lets it call GPL-only helpers.
        run_time_ns: nanoseconds spent in it.
        run_cnt: how often it ran.
        recursion_misses: how often it did not run, as it would have interrupted itself.
        verified_insns: instructions the verifier looked at.
        xlated_size: bytes of instructions after the verifier's rewriting.
        jited_size: bytes of machine code.
        map_ids: the maps it uses.
        btf_id: its BTF, or 0.
        attach_btf_id: the kernel type or function it is for, or 0.
    """

    id: int
    type: int
    tag: str
    name: str
    load_time_ns: int
    uid: int
    gpl_compatible: bool
    run_time_ns: int
    run_cnt: int
    recursion_misses: int
    verified_insns: int
    xlated_size: int
    jited_size: int
    map_ids: tuple[int, ...]
    btf_id: int
    attach_btf_id: int


class Program(Closing):
    """A program in the kernel, alive as long as a descriptor, a pin or a link holds it.

    Attributes:
        name: its name in the object, in full.
        type: enum bpf_prog_type.
        attach_type: enum bpf_attach_type it was loaded with.
        section: its section in the object; "" when it was not loaded from one.
        target: the target in the section name: "sched/sched_switch"; may be "".
        log: the verifier's log, if it was requested at load.
        definition: its section's line in libbpf's table; None without a known section.
        btf: the types of the object it was loaded from, or None.
        usdt_arguments: the numbers of the arguments that it reads of a probe, from 0; None: any.
        usdt: where to describe the probes it runs at, when its object has `bpf/usdt.bpf.h`.
    """

    def __init__(
        self,
        descriptor: Descriptor,
        name: str,
        program_type: int,
        attach_type: int = 0,
        *,
        section: str = "",
        target: str = "",
        log: str = "",
    ) -> None:
        self._descriptor = descriptor
        self.name = name
        self.type = program_type
        self.attach_type = attach_type
        self.section = section
        self.target = target
        self.log = log
        self.definition: SecDef | None = None
        self.btf: Btf | None = None
        self.usdt: object = None
        self.usdt_arguments: frozenset[int] | None = None

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Self:
        """The program pinned at `path`, in a bpf file system.

        Raises:
            KernelError: ENOENT, nothing is pinned there; EPERM, EACCES; EINVAL, it is not a
                program.
        """
        return cls._adopt(pins.open_program(os.fsdecode(path)))

    @classmethod
    def from_id(cls, program_id: int) -> Self:
        """The program that the kernel knows as `program_id`; needs CAP_SYS_ADMIN.

        Raises:
            KernelError: ENOENT, there is none (any more); EPERM.
        """
        from purebpf.loader.host.ids import open_id

        return cls._adopt(open_id(bpf.prog_get_fd_by_id, program_id, f"program {program_id}"))

    @classmethod
    def from_fd(cls, fd: int) -> Self:
        """The program behind a descriptor, which is duplicated and stays the caller's.

        Raises:
            KernelError: EINVAL, it is not a program; EBADF.
            OSError: EMFILE, there is no free descriptor.
        """
        pins.require_program(fd)
        borrowed = Descriptor(fd)
        try:
            return cls._adopt(borrowed.duplicate())
        finally:
            borrowed.detach()

    @classmethod
    def all(cls) -> Iterator[Self]:
        """Every program of this machine, opened; the caller closes each.

        Raises:
            KernelError: EPERM, no CAP_SYS_ADMIN.
        """
        from purebpf.loader.host.ids import walk

        return walk(bpf.prog_get_next_id, cls.from_id)

    @classmethod
    def _adopt(cls, descriptor: Descriptor) -> Self:
        """A program of another process: its name is the kernel's, of at most 15 characters."""
        try:
            info = _info(descriptor.fileno(), bytearray(BPF_PROG_INFO.size))
        except BaseException:
            descriptor.close()
            raise
        return cls(descriptor, _text(info["name"]), _number(info["type"]))

    @property
    def closed(self) -> bool:
        """True after it was closed."""
        return self._descriptor.closed

    @property
    def fd(self) -> int:
        """The number of its descriptor, which it keeps owning."""
        return self.fileno()

    def fileno(self) -> int:
        """The number of its descriptor.

        Raises:
            ValueError: it is closed.
        """
        if self._descriptor.fd < 0:
            raise ValueError(f"program {self.name!r} is closed")
        return self._descriptor.fd

    @staticmethod
    def query(target: Target, kind: str | int, *, effective: bool = False) -> Attached:
        """The programs attached to a place, by any process: see `purebpf.loader.attach.query`.

        `Program.query("/sys/fs/cgroup/web", "cgroup/connect4").programs`
        """
        from purebpf.loader.attach.query import query

        return query(target, kind, effective=effective)

    def attach(
        self, target: Any = None, *, pin: str | os.PathLike[str] | None = None, **options: Any
    ) -> Link:
        """Attach it to `target`, or where its section name says.

        The meaning of `target`, and the options, depend on the kind of program: see the `attach`
        function of each module in `purebpf.loader.attach`.

        With `pin`, the link has that name in a bpf file system and stays when this process ends.
        Where the name is a link's already, that link gets this program, without a gap, and stays
        where it is attached: `target` and options are not looked at then.

        Raises:
            AttachError: the kernel refused; says why.
            NotSupportedError: a kind of program that purebpf cannot attach, or no kernel feature.
            TypeError: a missing target, or an option that this kind of program does not have.
            ValueError: it is closed, or a target that is malformed; a FormatError that names the
                section when the target is its.
        """
        from purebpf.loader.attach import attach

        if pin is None:
            return attach(self, target, **options)
        if os.path.lexists(pin):
            from purebpf.loader.programs.link import Link

            link = Link.open(pin)
            try:
                link.update(self)
            except BaseException:
                link.close()
                raise
            return link
        link = attach(self, target, **options)
        try:
            link.pin(pin)
        except BaseException:
            link.close()
            raise
        return link

    def test_run(
        self,
        data: bytes = b"",
        ctx: Any = b"",
        *,
        repeat: int = 0,
        cpu: int | None = None,
        flags: int = 0,
        live_frames: bool = False,
        batch_size: int = 0,
    ) -> TestRun:
        """Run it now (BPF_PROG_TEST_RUN): see `purebpf.loader.programs.test_run.run`."""
        from purebpf.loader.programs.test_run import run

        return run(
            self,
            data,
            ctx,
            repeat=repeat,
            cpu=cpu,
            flags=flags,
            live_frames=live_frames,
            batch_size=batch_size,
        )

    def read_stream(self, name: str = "stdout") -> str:
        """Return the text printed since the last read, by `bpf_stream_printk()`; "" when there is
        none.

        "stderr" has the kernel's reports about it: a loop that took too long, a deadlock, an access
        to a page that its arena lacks. The kernel stores 100,000 bytes of each until they are read.

        Raises:
            NotSupportedError: the kernel does not have streams (Linux 6.17, commit 5ab154f1463a).
            ValueError: another name, or the program is closed.
        """
        from purebpf.loader.programs.streams import read_stream

        return read_stream(self.fileno(), name)

    @property
    def info(self) -> ProgramInfo:
        """The kernel's present description of it.

        Raises:
            ValueError: it is closed.
            KernelError: the kernel has no BPF_OBJ_GET_INFO_BY_FD (Linux 4.13, commit 1e2709769086).
        """
        fd = self.fileno()
        fields = _info(fd, bytearray(BPF_PROG_INFO.size))
        count = _number(fields.get("nr_map_ids", 0))
        return ProgramInfo(
            id=_number(fields["id"]),
            type=_number(fields["type"]),
            tag=_bytes(fields["tag"]).hex(),
            name=_text(fields.get("name", b"")),
            load_time_ns=_number(fields.get("load_time", 0)),
            uid=_number(fields.get("created_by_uid", 0)),
            gpl_compatible=bool(fields.get("gpl_compatible", 0)),
            run_time_ns=_number(fields.get("run_time_ns", 0)),
            run_cnt=_number(fields.get("run_cnt", 0)),
            recursion_misses=_number(fields.get("recursion_misses", 0)),
            verified_insns=_number(fields.get("verified_insns", 0)),
            xlated_size=_number(fields["xlated_prog_len"]),
            jited_size=_number(fields["jited_prog_len"]),
            map_ids=_map_ids(fd, count),
            btf_id=_number(fields.get("btf_id", 0)),
            attach_btf_id=_number(fields.get("attach_btf_id", 0)),
        )

    def xlated(self) -> bytes:
        """Its instructions after the verifier's rewriting; b"" without the right to see them.

        Raises:
            ValueError: it is closed.
        """
        fd = self.fileno()
        size = _number(_info(fd, bytearray(BPF_PROG_INFO.size))["xlated_prog_len"])
        code = bytearray(size)
        filled = _ask(fd, "xlated_prog_len", "xlated_prog_insns", code, size)
        # Without the right (net.core.bpf_jit_harden, kptr_restrict) the kernel clears the pointer.
        return bytes(code) if filled["xlated_prog_insns"] else b""

    def pin(self, path: str | os.PathLike[str]) -> None:
        """Give it a name in a bpf file system: it then lives without a process.

        Raises:
            KernelError: EEXIST, the name is in use; EPERM, not a bpf file system; ENOENT.
            ValueError: it is closed.
        """
        pins.pin(self.fileno(), os.fsdecode(path))

    def close(self) -> None:
        """Let go of it; links and pins keep it alive. Twice is harmless."""
        self._descriptor.close()

    def __repr__(self) -> str:
        kind = member_name(bpf_prog_type, self.type)
        return f"<Program {self.name!r}: {kind}{' (closed)' if self.closed else ''}>"

    def __del__(self) -> None:
        descriptor = getattr(self, "_descriptor", None)
        if descriptor is not None and not descriptor.closed:
            try:  # the warning may be an error
                warnings.warn(f"unclosed {self!r}", ResourceWarning, stacklevel=2, source=self)
            finally:
                descriptor.close()


def _info(fd: int, data: bytearray) -> dict[str, int | bytes]:
    program_info = bpf.obj_get_info_by_fd(fd, data)
    return BPF_PROG_INFO.unpack(data[:program_info])


def _ask(
    fd: int, size_field: str, field: str, room: bytearray, size: int
) -> dict[str, int | bytes]:
    """The info with an array of it written to `room`, which has space for `size` (in its unit)."""
    from purebpf.syscall.command import address_of

    return _info(fd, BPF_PROG_INFO.pack(**{size_field: size, field: address_of(room)}))


def _map_ids(fd: int, count: int) -> tuple[int, ...]:
    if not count:
        return ()
    room = bytearray(_U32 * count)
    _ask(fd, "nr_map_ids", "map_ids", room, count)
    return tuple(memoryview(room).cast("I"))


def _number(value: int | bytes) -> int:
    assert isinstance(value, int)
    return value


def _bytes(value: int | bytes) -> bytes:
    assert isinstance(value, bytes)
    return value


def _text(value: int | bytes) -> str:
    return _bytes(value).partition(b"\0")[0].decode(errors="replace")
