"""The features of this kernel, detected by use: bpf(2) and distributions lie about versions.

Every probe makes the smallest object that needs the feature, throws it away, and is remembered,
unless it failed for want of memory or descriptors. A `Feature` is true or false and has the
kernel's answer:

    if not (feature := features.have_map_type("ringbuf")):
        print(feature)        # "map type RINGBUF: no: bpf(BPF_MAP_CREATE) failed with EINVAL"

A process that may not use bpf(2) at all is refused everything, with EPERM as the reason.
"""

from __future__ import annotations

import errno
import struct
from collections.abc import Callable, Iterator

from purebpf.abi.bpf import (
    BPF_F_MMAPABLE,
    bpf_attach_type,
    bpf_map_type,
    bpf_prog_type,
    bpf_stats_type,
)
from purebpf.abi.helpers import bpf_func_id
from purebpf.abi.names import member_name
from purebpf.btf.types.kinds import Kind
from purebpf.errors import ENOTSUPP, KernelError, NotSupportedError, errno_name
from purebpf.late_pattern import compile_later
from purebpf.loader.features import probes
from purebpf.loader.features.attach_features import have_attach
from purebpf.loader.features.feature import Feature, answer_refusal, forget, remember
from purebpf.loader.host import memlock
from purebpf.syscall import bpf
from purebpf.syscall.command import Log
from purebpf.syscall.descriptor import Descriptor

__all__ = [
    "Feature",
    "all_features",
    "forget",
    "have_attach",
    "have_attach_cookie",
    "have_batch_operations",
    "have_bounded_loops",
    "have_btf_kind",
    "have_context_tags",
    "have_exclusive_maps",
    "have_frozen_maps",
    "have_function_info",
    "have_global_functions",
    "have_helper",
    "have_instruction_set",
    "have_large_programs",
    "have_map_type",
    "have_mmapable_arrays",
    "have_perf_event_link",
    "have_program_names",
    "have_program_type",
    "have_question_marks",
    "have_ring_buffer",
    "have_run_time_statistics",
    "have_uprobe_multi",
]

_LOG_SIZE = 4096
_SHA256_SIZE = 32
_CANNOT_CALL = compile_later(
    r"invalid func |unknown func |cannot use helper|helper call is not allow"
)
"""How verifiers have put it (kernel/bpf/verifier.c, check_helper_call): unchanged since 4.9."""


def _try(name: str, make: Callable[[], Descriptor | None]) -> Feature:
    """Return True if making it works."""
    try:
        probe_fd = _make(make)
    except KernelError as error:
        return answer_refusal(name, error)
    if probe_fd is not None:
        probe_fd.close()
    return Feature(name, supported=True, reason="the kernel accepted it")


def _make(make: Callable[[], Descriptor | None]) -> Descriptor | None:
    """The result, for which RLIMIT_MEMLOCK is raised once: before Linux 5.11 it hides features.

    Memory of discarded objects counts until an RCU grace period is over.
    """
    try:
        return make()
    except KernelError as error:
        if error.errno != errno.EPERM or not memlock.raise_memlock():
            raise
    return make()


def have_program_type(program_type: int | str) -> Feature:
    """Test if programs of enum bpf_prog_type `program_type` can be loaded: "kprobe", "xdp".

    Raises:
        KeyError: there is no such name; lists those that there are.
    """
    return _have_program_type(_number(bpf_prog_type, program_type))


@remember
def _have_program_type(program_type: int) -> Feature:
    name = f"program type {_enum_name(bpf_prog_type, program_type)}"
    log = Log(_LOG_SIZE)
    feature = _try(name, lambda: probes.load_program(program_type, log=log))
    if not feature and log.text():
        return Feature(name, supported=True, reason="the verifier supports it")
    return feature


def have_map_type(map_type: int | str) -> Feature:
    """Test if maps of enum bpf_map_type `map_type` can be created: "hash", "ringbuf".

    Raises:
        KeyError: there is no such name; lists those that there are.
    """
    return _have_map_type(_number(bpf_map_type, map_type))


@remember
def _have_map_type(map_type: int) -> Feature:
    name = f"map type {_enum_name(bpf_map_type, map_type)}"
    try:
        probe_fd = _make(lambda: probes.make_map(map_type))
    except KernelError as error:
        if map_type == bpf_map_type.BPF_MAP_TYPE_STRUCT_OPS and error.errno == ENOTSUPP:
            return Feature(name, supported=True, reason="the kernel supports it")
        return answer_refusal(name, error)
    assert probe_fd is not None
    probe_fd.close()
    return Feature(name, supported=True, reason="the kernel accepted it")


def have_helper(program_type: int | str, helper: int | str) -> Feature:
    """Test if GPL programs of a type may call helper `helper` (enum bpf_func_id).

    Both by number or name: `have_helper("kprobe", "get_stack")`.

    Raises:
        KeyError: there is no such name; lists those that there are.
        NotSupportedError: a type that must name a kernel function to load (TRACING, STRUCT_OPS,
            EXT, LSM) says nothing about helpers without one.
    """
    return _have_helper(_number(bpf_prog_type, program_type), _number(bpf_func_id, helper))


@remember
def _have_helper(program_type: int, helper: int) -> Feature:
    name = (
        f"helper {_enum_name(bpf_func_id, helper)} "
        f"in program type {_enum_name(bpf_prog_type, program_type)}"
    )
    if program_type in probes.NEEDS_BTF_TARGET:
        raise NotSupportedError(name, "the probe cannot load such a program without a target")
    if not (loads := have_program_type(program_type)):
        return loads._replace(name=name)
    log = Log(_LOG_SIZE)
    feature = _try(name, lambda: probes.load_program(program_type, probes.calling(helper), log))
    if feature:
        return feature
    for line in log.text().splitlines():
        if _CANNOT_CALL.search(line):
            return Feature(name, supported=False, reason=line)
    if not log.text():
        return feature
    return Feature(name, supported=True, reason="the verifier supports it")


@remember
def have_btf_kind(kind: Kind) -> Feature:
    """Test if BPF_BTF_LOAD accepts types of this kind."""
    return _try(f"BTF kind {kind.name}", lambda: bpf.btf_load(probes.kind_blob(kind)))


@remember
def have_global_functions() -> Feature:
    """Test if BTF functions may be global, to be verified separately.

    Linux 5.6 (commit 51c39bb1d5d1).
    """
    return _try("global functions", lambda: bpf.btf_load(probes.global_function_blob()))


@remember
def have_question_marks() -> Feature:
    """Test if BTF may name sections as `SEC("?.struct_ops")` does (Linux 6.9).

    Commit bd70a8fb7ca4, "bpf: Allow all printable characters in BTF DATASEC names".
    """
    name = "question marks in BTF"
    return _try(name, lambda: bpf.btf_load(probes.question_mark_blob()))


@remember
def have_context_tags() -> Feature:
    """Detect support for parameters tagged `arg:ctx`, which are the program's context.

    Linux 6.8 (commit 94e1c70a3452).
    """

    def load() -> Descriptor:
        functions = struct.pack("=4I", 0, 4, 2, 6)
        with bpf.btf_load(probes.context_tag_blob()) as types:
            return bpf.prog_load(
                bpf_prog_type.BPF_PROG_TYPE_KPROBE,
                probes.calling_a_function(bpf_func_id.BPF_FUNC_get_func_ip),
                "GPL",
                prog_btf_fd=types.fileno(),
                func_info=functions,
                func_info_cnt=2,
                func_info_rec_size=8,
            )

    return _try("context tags", load)


def have_ring_buffer() -> Feature:
    """BPF_MAP_TYPE_RINGBUF (Linux 5.8).

    Commit 457f44363a88, "bpf: Implement BPF ring buffer and verifier support for it".
    """
    return have_map_type(bpf_map_type.BPF_MAP_TYPE_RINGBUF)


@remember
def have_mmapable_arrays() -> Feature:
    """BPF_F_MMAPABLE arrays (Linux 5.5, commit fc9702273e2e): global variables as memory."""
    array = bpf_map_type.BPF_MAP_TYPE_ARRAY
    return _try("mmapable arrays", lambda: probes.make_map(array, BPF_F_MMAPABLE))


@remember
def have_frozen_maps() -> Feature:
    """BPF_MAP_FREEZE (Linux 5.2, commit 87df15de441b): constants that the verifier can rely on."""

    def freeze() -> None:
        with probes.make_map(bpf_map_type.BPF_MAP_TYPE_ARRAY) as array:
            bpf.map_freeze(array.fileno())

    return _try("frozen maps", freeze)


@remember
def have_exclusive_maps() -> Feature:
    """Maps that only a program with given instructions may use (Linux 6.18).

    Commit baefdbdf6812, "bpf: Implement exclusive map creation".
    """
    array = bpf_map_type.BPF_MAP_TYPE_ARRAY
    nobody = bytes(_SHA256_SIZE)

    def make() -> Descriptor:
        size = len(nobody)
        return bpf.map_create(array, 4, 4, 1, excl_prog_hash=nobody, excl_prog_hash_size=size)

    return _try("exclusive maps", make)


@remember
def have_batch_operations() -> Feature:
    """BPF_MAP_LOOKUP_BATCH and its kin on hash maps (Linux 5.6, commit 057996380a42)."""

    def look_up() -> None:
        with probes.make_map(bpf_map_type.BPF_MAP_TYPE_HASH) as table:
            stopped = bpf.map_lookup_batch(
                table.fileno(),
                in_batch=None,
                out_batch=bytearray(4),
                keys=bytearray(4),
                values=bytearray(4),
                count=1,
            ).errno
        if stopped not in (0, errno.ENOENT):  # ENOENT: the map is empty
            raise KernelError("bpf(BPF_MAP_LOOKUP_BATCH)", stopped)

    return _try("batch operations", look_up)


@remember
def have_program_names() -> Feature:
    """Named programs (Linux 4.15, commit cb4d2b3f03d8)."""

    def load() -> Descriptor:
        socket_filter = bpf_prog_type.BPF_PROG_TYPE_SOCKET_FILTER
        return bpf.prog_load(socket_filter, probes.RETURN_0, "GPL", prog_name=b"probe")

    return _try("program names", load)


@remember
def have_instruction_set(version: int) -> Feature:
    """Detect support for the instructions of clang's `-mcpu=v<version>`, 1 to 4.

    Version 2 compares with < and <= (commit 92b31a9af73b, "bpf: add BPF_J{LT,LE,SLT,SLE}
    instructions"), 3 has 32-bit jumps (Linux 5.1, commit 092ed0968bb6, "bpf: verifier support
    JMP32"), 4 long jumps (commit 4cd58e9af8b9), signed division (commit ec0e2da95f72) and loads
    that extend signs (Linux 6.6, commit 1f9a1ea821ff, "bpf: Support new sign-extension load
    insns").

    Raises:
        ValueError: there is no such version.
    """
    if version not in probes.INSTRUCTION_SETS:
        raise ValueError(f"unknown instruction set v{version}; known: v1 to v4")
    return _try(f"instruction set v{version}", _filter(probes.INSTRUCTION_SETS[version]))


@remember
def have_bounded_loops() -> Feature:
    """Detect support for jumps back, if the verifier sees an end to them.

    Linux 5.3 (commit 2589726d12a1, "bpf: introduce bounded loops").
    """
    return _try("bounded loops", _filter(probes.BOUNDED_LOOP))


@remember
def have_large_programs() -> Feature:
    """Detect support for programs of more than 4,096 instructions (needs CAP_BPF).

    Linux 5.2 (commit c04c0d2b968a, "bpf: increase complexity limit and maximum program size").
    """
    return _try("large programs", _filter(probes.LARGE_PROGRAM))


def _filter(code: bytes) -> Callable[[], Descriptor]:
    """Return a function that loads `code` as a socket filter."""
    return lambda: probes.load_program(bpf_prog_type.BPF_PROG_TYPE_SOCKET_FILTER, code)


@remember
def have_function_info() -> Feature:
    """Programs with BTF function info (Linux 5.0, commit 838e96904ff3)."""

    def load() -> Descriptor:
        with bpf.btf_load(probes.kind_blob(Kind.FUNC)) as types:
            return bpf.prog_load(
                bpf_prog_type.BPF_PROG_TYPE_SOCKET_FILTER,
                probes.RETURN_0,
                "GPL",
                prog_btf_fd=types.fileno(),
                func_info=_FUNCTION_3_AT_0,
                func_info_cnt=1,
                func_info_rec_size=len(_FUNCTION_3_AT_0),
            )

    return _try("function info", load)


_FUNCTION_3_AT_0 = (0).to_bytes(4, "little") + (3).to_bytes(4, "little")
"""struct bpf_func_info: instruction 0 begins the function of type 3, as in `kind_blob(FUNC)`."""


@remember
def have_perf_event_link() -> Feature:
    """bpf_link for perf events (Linux 5.15): attach with a cookie, detach by closing.

    Commit b89fbfbb854c.

    Asked for on descriptor -1, a kernel that knows them says EBADF; another, EINVAL.
    """
    name = "links of perf events"
    try:
        with probes.load_program(bpf_prog_type.BPF_PROG_TYPE_TRACEPOINT) as program:
            bpf.link_create(
                bpf_attach_type.BPF_PERF_EVENT,
                prog_fd=program.fileno(),
                target_fd=0xFFFFFFFF,
            ).close()
    except KernelError as error:
        known = error.errno == errno.EBADF and "LINK_CREATE" in error.call
        if not known:
            return answer_refusal(name, error)
        return Feature(name, known, "the kernel supports them")
    raise AssertionError("the kernel linked a program to descriptor -1")


@remember
def have_uprobe_multi() -> Feature:
    """Links of many uprobes that tell processes apart (Linux 6.9, commit 46ba0e49b642).

    Asked for in the file `/`, which is none: a kernel with such links says EBADF, and EINVAL for
    process -1 unless it takes the number for a thread's, as the first of them did.
    """
    name = "multi-uprobes"
    multi = bpf_attach_type.BPF_TRACE_UPROBE_MULTI
    said = []
    try:
        with probes.load_program(bpf_prog_type.BPF_PROG_TYPE_KPROBE, attach_type=multi) as program:
            for pid in (0, 0xFFFFFFFF):
                try:
                    bpf.link_create(
                        multi,
                        prog_fd=program.fileno(),
                        uprobe_multi_path=b"/\0",
                        uprobe_multi_offsets=bytes(8),
                        uprobe_multi_cnt=1,
                        uprobe_multi_pid=pid,
                    ).close()
                except KernelError as error:
                    said.append(error.errno)
    except KernelError as error:
        return answer_refusal(name, error)
    if said == [errno.EBADF, errno.EINVAL]:
        return Feature(name, supported=True, reason="the kernel supports them")
    answers = " and ".join(errno_name(errno_or_zero or 0) for errno_or_zero in said)
    return Feature(name, supported=False, reason=f"bpf(BPF_LINK_CREATE) failed with {answers}")


def have_attach_cookie() -> Feature:
    """bpf_get_attach_cookie() in perf event programs (Linux 5.15, commit 7adfc6c9b315)."""
    helper = bpf_func_id.BPF_FUNC_get_attach_cookie
    return have_helper(bpf_prog_type.BPF_PROG_TYPE_PERF_EVENT, helper)


@remember
def have_run_time_statistics() -> Feature:
    """BPF_ENABLE_STATS (Linux 5.8, commit d46edd671a14): run time and count of programs."""
    run_time = bpf_stats_type.BPF_STATS_RUN_TIME
    return _try("run time statistics", lambda: bpf.enable_stats(run_time))


def all_features() -> Iterator[Feature]:
    """Every feature: program types, map types, BTF kinds, instruction sets, the rest."""
    yield from (
        have_program_type(program_type)
        for program_type in list(bpf_prog_type)[1:]
        if _real(program_type)
    )
    yield from (have_map_type(map_type) for map_type in list(bpf_map_type)[1:] if _real(map_type))
    yield from (have_btf_kind(kind) for kind in list(Kind)[1:])
    yield from map(have_instruction_set, probes.INSTRUCTION_SETS)
    for probe in (
        have_bounded_loops,
        have_large_programs,
        have_global_functions,
        have_question_marks,
        have_mmapable_arrays,
        have_frozen_maps,
        have_exclusive_maps,
        have_batch_operations,
        have_program_names,
        have_function_info,
        have_context_tags,
        have_perf_event_link,
        have_attach_cookie,
        have_uprobe_multi,
        have_run_time_statistics,
    ):
        yield probe()


def _real(value: bpf_prog_type | bpf_map_type) -> bool:
    return not value.name.startswith("__")


_Names = type[bpf_prog_type] | type[bpf_map_type] | type[bpf_func_id]
_KINDS: dict[_Names, tuple[str, str]] = {
    bpf_prog_type: ("program type", "bpf_prog_type_"),
    bpf_map_type: ("map type", "bpf_map_type_"),
    bpf_func_id: ("helper", "bpf_func_"),
}
"""What each enum has the names of, and how those begin."""


def _number(names: _Names, wanted: int | str) -> int:
    """27 of `"ringbuf"`, `"BPF_MAP_TYPE_RINGBUF"` and 27; helpers may begin with `bpf_` too."""
    if not isinstance(wanted, str):
        return wanted
    kind, prefix = _KINDS[names]
    known = {_tail(name).lower(): entry for name, entry in names.__members__.items() if entry}
    short = wanted.lower().removeprefix(prefix)
    if names is bpf_func_id:
        short = short.removeprefix("bpf_")
    if short not in known:
        raise KeyError(f"unknown {kind} {wanted!r}; known: {', '.join(known)}")
    return known[short]


def _enum_name(names: _Names, value: int) -> str:
    """`"RINGBUF"` of 27; a number newer than our tables stays one."""
    prefix = _KINDS[names][1].upper()
    return member_name(names, value, prefix=prefix, unknown="").removesuffix("_DEPRECATED")


def _tail(name: str) -> str:
    """`"RINGBUF"` of `"BPF_MAP_TYPE_RINGBUF"`."""
    tail = name.partition("_TYPE_")[2] or name.partition("_FUNC_")[2]
    return tail.removesuffix("_DEPRECATED")
