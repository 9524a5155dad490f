"""BPF_PROG_TEST_RUN: run a program now, on data or a context that we make up."""

from __future__ import annotations

import errno
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from purebpf.abi.bpf import bpf_prog_type
from purebpf.abi.names import member_name
from purebpf.errors import ENOTSUPP, KernelError, NotSupportedError, SchemaError
from purebpf.syscall import bpf
from purebpf.tuples import NamedTuple

if TYPE_CHECKING:
    from purebpf.btf.codec.structs import StructCodec

__all__ = ["TestRun", "run"]

_ON_CPU = 1  # BPF_F_TEST_RUN_ON_CPU
_LIVE_FRAMES = 2  # BPF_F_TEST_XDP_LIVE_FRAMES
_HEADROOM = 512
"""A program may grow its packet (bpf_xdp_adjust_head and the like) by less than this."""

_ATTEMPTS = 10
_LEAST_PACKET = 14
_ON_PACKETS = frozenset(
    {
        bpf_prog_type.BPF_PROG_TYPE_SOCKET_FILTER,
        bpf_prog_type.BPF_PROG_TYPE_SCHED_CLS,
        bpf_prog_type.BPF_PROG_TYPE_SCHED_ACT,
        bpf_prog_type.BPF_PROG_TYPE_XDP,
        bpf_prog_type.BPF_PROG_TYPE_CGROUP_SKB,
        bpf_prog_type.BPF_PROG_TYPE_LWT_IN,
        bpf_prog_type.BPF_PROG_TYPE_LWT_OUT,
        bpf_prog_type.BPF_PROG_TYPE_LWT_XMIT,
        bpf_prog_type.BPF_PROG_TYPE_LWT_SEG6LOCAL,
        bpf_prog_type.BPF_PROG_TYPE_FLOW_DISSECTOR,
    }
)
"""Those that want an Ethernet header at least (net/bpf/test_run.c)."""

_CONTEXT_COMES_BACK = _ON_PACKETS | {bpf_prog_type.BPF_PROG_TYPE_SK_LOOKUP}
"""The context is copied out; others change it in place, or not at all."""

_WHY = {
    errno.ENOSPC: f"the packet grew by more than {_HEADROOM} bytes",
    errno.E2BIG: "the context is longer than this kernel's, or the batch than 256 frames",
}


class Runnable(Protocol):
    """The parts of a program that a test run needs."""

    name: str
    type: int

    def fileno(self) -> int:
        """The number of its descriptor."""


class TestRun(NamedTuple):
    """The result of a run.

    Attributes:
        retval: the program's return value, as an unsigned 32-bit number.
        data: the packet afterwards; b"" for programs without one.
        ctx: the context afterwards, as long as the kernel's; b"" without a context. A record of its
            type if the context was a mapping or record.
        duration_ns: nanoseconds of one run, the mean of `repeat`.
    """

    retval: int
    data: bytes
    ctx: Any
    duration_ns: int

    @property
    def retval_signed(self) -> int:
        """The program's return value, as an `int` of C: -1, not 4294967295."""
        return self.retval - (self.retval >> 31 << 32)


def run(
    program: Runnable,
    data: bytes = b"",
    ctx: Any = b"",
    *,
    repeat: int = 0,
    cpu: int | None = None,
    flags: int = 0,
    live_frames: bool = False,
    batch_size: int = 0,
) -> TestRun:
    """Run `program` once, or `repeat` times.

    A context may be bytes; or, of programs on packets, of XDP and of socket lookups, a mapping or
    a record: `ctx={"mark": 7}`. Fields that it does not name are zero, and `TestRun.ctx` is a
    record then.

    `data` is the packet of socket and XDP programs (at least 14 bytes), `ctx` the context: a
    struct __sk_buff or xdp_md for these, the arguments as u64 for raw tracepoints, any struct for
    syscall programs. `cpu` chooses one for raw tracepoints (Linux 5.10, commit 1b4d60ec162f).

    With `live_frames`, the verdict of an XDP program really applies to each of `repeat` packets, in
    batches of `batch_size`, 64 by default (Linux 5.18, commit b530e9e1063e): XDP_TX sends them.
    There is no packet to return afterwards.

    Raises:
        NotSupportedError: a type of program that cannot be run this way.
        KernelError: EINVAL, data or context do not suit the type; ENOSPC, the packet grew by more
            than 512 bytes; E2BIG, the context is longer than the kernel's.
        ValueError: a number that does not fit; the program is closed.
        TypeError: data or a context that is not bytes.
        SchemaError: a context by name for another type of program; a value or a name that does not
            fit it.
    """
    codec = None if isinstance(ctx, (bytes, bytearray, memoryview)) else _context_codec(program)
    if codec is not None:
        ctx = _encode_context(codec, ctx, memoryview(data).nbytes)
    fields = {"flags": flags}
    if cpu is not None:
        fields = {"flags": flags | _ON_CPU, "cpu": cpu}
    if live_frames or batch_size:
        fields |= {"flags": fields["flags"] | _LIVE_FRAMES, "batch_size": batch_size}
    data, context = memoryview(data).tobytes(), bytearray(memoryview(ctx))
    is_live = bool(fields["flags"] & _LIVE_FRAMES)
    data_out = bytearray(len(data) + _HEADROOM) if data and not is_live else None
    comes_back = context and not is_live and program.type in _CONTEXT_COMES_BACK
    # All of the kernel's struct comes back, also when less of it was given.
    ctx_out = bytearray(len(context) + _HEADROOM) if comes_back else None
    for attempt in range(_ATTEMPTS):
        try:
            result = bpf.prog_test_run(
                program.fileno(),
                data_in=data,
                data_out=data_out,
                ctx_in=context,
                ctx_out=ctx_out,
                repeat=repeat,
                **fields,
            )
        except KernelError as error:
            if error.errno == errno.EINTR and attempt < _ATTEMPTS - 1:
                continue
            if error.errno in (ENOTSUPP, errno.EOPNOTSUPP):
                raise _explain_unsupported(program) from None
            if error.errno == errno.EINVAL:
                raise _unsuitable(program, len(data), error) from None
            raise _explain_refusal(program, error) from None
        after: Any = bytes(ctx_out[: result.ctx_size_out] if ctx_out is not None else context)
        if codec is not None:
            after = codec.decode(after.ljust(codec.size, b"\0"))
        packet = (data_out or b"")[: result.data_size_out]
        return TestRun(result.retval, bytes(packet), after, result.duration_ns)
    raise AssertionError("the last attempt raises")


def _context_codec(program: Runnable) -> StructCodec:
    """Return the function that makes contexts of this kind of program, by the kernel's types."""
    from purebpf.btf.codec.codecs import codec
    from purebpf.btf.codec.structs import StructCodec
    from purebpf.btf.types.kinds import Kind
    from purebpf.loader.types.kernel_btf import kernel_btf

    if program.type == bpf_prog_type.BPF_PROG_TYPE_XDP:
        name = "xdp_md"
    elif program.type == bpf_prog_type.BPF_PROG_TYPE_SK_LOOKUP:
        name = "bpf_sk_lookup"
    elif program.type in _ON_PACKETS - {bpf_prog_type.BPF_PROG_TYPE_FLOW_DISSECTOR}:
        name = "__sk_buff"
    else:
        raise SchemaError(f"the context of {_kind(program)} programs is given as bytes")
    btf = kernel_btf()
    type_ids = btf.find(name, Kind.STRUCT)
    if not type_ids:
        raise SchemaError(f"this kernel's BTF has no struct {name}: give the context as bytes")
    context_codec = codec(btf, type_ids[0])
    assert isinstance(context_codec, StructCodec)
    return context_codec


def _encode_context(codec: StructCodec, ctx: Any, size: int) -> bytes:
    """Return a context with the fields that a mapping names; XDP wants the packet's size in it."""
    if not isinstance(ctx, Mapping):
        return codec.encode(ctx)
    if codec.c_type == "struct xdp_md":
        ctx = {"data_end": size, **ctx}
    return codec.encode(codec.merge(codec.decode(bytes(codec.size)), ctx))


def _explain_unsupported(program: Runnable) -> NotSupportedError:
    reason = f"this kernel cannot test-run {_kind(program)} programs"
    return NotSupportedError(f"test run of program {program.name!r}", reason)


def _explain_refusal(program: Runnable, error: KernelError) -> KernelError:
    number = error.errno or 0
    description = f"test run of program {program.name!r}"
    return KernelError(error.call, number, description, why=_WHY.get(number, ""))


def _unsuitable(program: Runnable, size: int, error: KernelError) -> KernelError:
    """EINVAL, for `size` bytes of data."""
    why = f"the data, context or flags do not suit a {_kind(program)} program"
    fix = ""
    if program.type in _ON_PACKETS and size < _LEAST_PACKET:
        least = f"a packet of at least {_LEAST_PACKET} bytes, not {size}"
        why = f"a {_kind(program)} program needs {least}"
        fix = "pass one: test_run(data=bytes(64))"
    description = f"test run of program {program.name!r}"
    return KernelError(error.call, errno.EINVAL, description, why=why, fix=fix)


def _kind(program: Runnable) -> str:
    return member_name(bpf_prog_type, program.type)
