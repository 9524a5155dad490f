"""The smallest program, map and BTF of each kind, for `features`.

Each function makes one and throws it away, and raises the `KernelError` of the call. The oddities
in the tables are requirements of the types (kernel/bpf/*.c, and libbpf's probes, which discovered
them).
"""

from __future__ import annotations

import mmap
import struct

from purebpf.abi.bpf import (
    BPF_F_MMAPABLE,
    BPF_F_NO_PREALLOC,
    bpf_attach_type,
    bpf_map_type,
    bpf_prog_type,
)
from purebpf.abi.instruction import CALL, EXIT, PSEUDO_CALL, Instruction, pack
from purebpf.abi.sections import BPF_F_SLEEPABLE
from purebpf.btf.types.kinds import Kind
from purebpf.syscall import bpf
from purebpf.syscall.command import Log
from purebpf.syscall.descriptor import Descriptor

__all__ = [
    "BOUNDED_LOOP",
    "INSTRUCTION_SETS",
    "LARGE_PROGRAM",
    "NEEDS_BTF_TARGET",
    "RETURN_0",
    "calling",
    "calling_a_function",
    "context_tag_blob",
    "global_function_blob",
    "kind_blob",
    "load_program",
    "make_map",
    "question_mark_blob",
]

_MOV64 = 0xB7
_SUB64, _JNE = 0x17, 0x55
_JLT, _JLT32, _JA32, _MOV64_REGISTER = 0xA5, 0xA6, 0x06, 0xBF
_RETURN = Instruction(EXIT, 0, 0, 0, 0)
_ZERO = Instruction(_MOV64, 0, 0, 0, 0)
RETURN_0 = pack([_ZERO, _RETURN])
LARGE_PROGRAM = pack([_ZERO]) * 4096 + pack([_RETURN])
"""One more instruction than BPF_MAXINSNS."""
BOUNDED_LOOP = pack(
    [
        *(Instruction(_MOV64, 0, 0, 0, 3), Instruction(_SUB64, 0, 0, 0, 1)),
        *(Instruction(_JNE, 0, 0, -2, 0), _RETURN),
    ]
)
_FROM_8_BITS = Instruction(_MOV64_REGISTER, 0, 0, 8, 0)
INSTRUCTION_SETS = {
    1: pack([_ZERO, Instruction(_JNE, 0, 0, 0, 0), _RETURN]),
    2: pack([_ZERO, Instruction(_JLT, 0, 0, 0, 0), _RETURN]),
    3: pack([_ZERO, Instruction(_JLT32, 0, 0, 0, 0), _RETURN]),
    4: pack([_ZERO, _FROM_8_BITS, Instruction(_JA32, 0, 0, 0, 0), _RETURN]),
}
"""What each of clang's `-mcpu=v1` to `v4` has, and none before it: jumps to what follows, and a
move that extends the sign (commit 8100928c8814, "bpf: Support new sign-extension mov insns"; Linux
6.1 knows the jump of v4 and not the rest).
"""

NEEDS_BTF_TARGET = frozenset(
    {
        bpf_prog_type.BPF_PROG_TYPE_TRACING,
        bpf_prog_type.BPF_PROG_TYPE_STRUCT_OPS,
        bpf_prog_type.BPF_PROG_TYPE_EXT,
        bpf_prog_type.BPF_PROG_TYPE_LSM,
    }
)
"""Types that only load for a real kernel function; with type id 1 the verifier says so."""

_EXPECTED: dict[int, int] = {
    bpf_prog_type.BPF_PROG_TYPE_CGROUP_SOCK_ADDR: bpf_attach_type.BPF_CGROUP_INET4_CONNECT,
    bpf_prog_type.BPF_PROG_TYPE_CGROUP_SOCKOPT: bpf_attach_type.BPF_CGROUP_GETSOCKOPT,
    bpf_prog_type.BPF_PROG_TYPE_LIRC_MODE2: bpf_attach_type.BPF_LIRC_MODE2,
    bpf_prog_type.BPF_PROG_TYPE_FLOW_DISSECTOR: bpf_attach_type.BPF_FLOW_DISSECTOR,
    bpf_prog_type.BPF_PROG_TYPE_SK_LOOKUP: bpf_attach_type.BPF_SK_LOOKUP,
    bpf_prog_type.BPF_PROG_TYPE_NETFILTER: bpf_attach_type.BPF_NETFILTER,
    bpf_prog_type.BPF_PROG_TYPE_TRACING: bpf_attach_type.BPF_TRACE_RAW_TP,
    bpf_prog_type.BPF_PROG_TYPE_LSM: bpf_attach_type.BPF_LSM_MAC,
}

_NO_KEY = frozenset(
    {
        bpf_map_type.BPF_MAP_TYPE_QUEUE,
        bpf_map_type.BPF_MAP_TYPE_STACK,
        bpf_map_type.BPF_MAP_TYPE_BLOOM_FILTER,
    }
)
_RINGS = frozenset({bpf_map_type.BPF_MAP_TYPE_RINGBUF, bpf_map_type.BPF_MAP_TYPE_USER_RINGBUF})
_LOCAL_STORAGE = frozenset(
    {
        bpf_map_type.BPF_MAP_TYPE_SK_STORAGE,
        bpf_map_type.BPF_MAP_TYPE_INODE_STORAGE,
        bpf_map_type.BPF_MAP_TYPE_TASK_STORAGE,
        bpf_map_type.BPF_MAP_TYPE_CGRP_STORAGE,
    }
)
_STRUCT_OPS = bpf_map_type.BPF_MAP_TYPE_STRUCT_OPS
_OF_MAPS = frozenset(
    {bpf_map_type.BPF_MAP_TYPE_ARRAY_OF_MAPS, bpf_map_type.BPF_MAP_TYPE_HASH_OF_MAPS}
)

# Key size, value size, entries, flags.
_SHAPES: dict[int, tuple[int, int, int, int]] = {
    bpf_map_type.BPF_MAP_TYPE_STACK_TRACE: (4, 8, 1, 0),
    bpf_map_type.BPF_MAP_TYPE_LPM_TRIE: (8, 8, 1, BPF_F_NO_PREALLOC),
    bpf_map_type.BPF_MAP_TYPE_CGROUP_STORAGE: (16, 8, 0, 0),
    bpf_map_type.BPF_MAP_TYPE_PERCPU_CGROUP_STORAGE: (16, 8, 0, 0),
    bpf_map_type.BPF_MAP_TYPE_ARENA: (0, 0, 1, BPF_F_MMAPABLE),
    bpf_map_type.BPF_MAP_TYPE_INSN_ARRAY: (4, 16, 1, 0),
    bpf_map_type.BPF_MAP_TYPE_RHASH: (4, 4, 1, BPF_F_NO_PREALLOC),
}


def calling(helper: int) -> bytes:
    """A program that calls a helper with whatever is in the registers."""
    return pack([Instruction(CALL, 0, 0, 0, helper), Instruction(EXIT, 0, 0, 0, 0)])


def load_program(
    program_type: int,
    code: bytes = RETURN_0,
    log: Log | None = None,
    *,
    attach_type: int | None = None,
) -> Descriptor:
    """Load `code` as a GPL program of a type; the caller closes it.

    Without an `attach_type`, it gets the one that programs of its type need to load.
    """
    is_syscall = program_type == bpf_prog_type.BPF_PROG_TYPE_SYSCALL
    return bpf.prog_load(
        program_type,
        code,
        "GPL",
        log=log,
        expected_attach_type=_EXPECTED.get(program_type, 0) if attach_type is None else attach_type,
        attach_btf_id=1 if program_type in NEEDS_BTF_TARGET else 0,
        prog_flags=BPF_F_SLEEPABLE if is_syscall else 0,
    )


def make_map(map_type: int, flags: int = 0) -> Descriptor:
    """Create the smallest map of a type; the caller closes it."""
    if map_type in _OF_MAPS:
        with make_map(bpf_map_type.BPF_MAP_TYPE_HASH) as inner:
            return bpf.map_create(map_type, 4, 4, 1, inner_map_fd=inner.fileno())
    if map_type in _LOCAL_STORAGE:
        with bpf.btf_load(_blob(_INT)) as types:
            return bpf.map_create(
                map_type,
                4,
                4,
                0,
                map_flags=BPF_F_NO_PREALLOC,
                btf_fd=types.fileno(),
                btf_key_type_id=1,
                btf_value_type_id=1,
            )
    key, value, entries, needed = _SHAPES.get(map_type, (4, 4, 1, 0))
    if map_type in _NO_KEY:
        key = 0
    if map_type in _RINGS:
        key, value, entries = 0, 0, mmap.PAGESIZE
    return bpf.map_create(
        map_type,
        key,
        value,
        entries,
        map_flags=flags | needed,
        btf_vmlinux_value_type_id=1 if map_type == _STRUCT_OPS else 0,
    )


# BTF: a type is name offset, info word (kind_flag, kind, vlen), size or type id, then the tail.
# Every blob has the string "x" at offset 1 and an int at type id 1.


def _type(name: int, kind: Kind, vlen: int, size_or_type: int, *tail: int) -> bytes:
    return struct.pack(f"={3 + len(tail)}I", name, kind << 24 | vlen, size_or_type, *tail)


_SIGNED_32 = 1 << 24 | 32
_INT = _type(1, Kind.INT, 0, 4, _SIGNED_32)
_STATIC, _GLOBAL = 0, 1

_KINDS: dict[Kind, bytes] = {
    Kind.INT: b"",
    Kind.PTR: _type(0, Kind.PTR, 0, 1),
    Kind.ARRAY: _type(0, Kind.ARRAY, 0, 0, 1, 1, 1),
    Kind.STRUCT: _type(1, Kind.STRUCT, 0, 4),
    Kind.UNION: _type(1, Kind.UNION, 0, 4),
    Kind.ENUM: _type(1, Kind.ENUM, 1, 4, 1, 0),
    Kind.FWD: _type(1, Kind.FWD, 0, 0),
    Kind.TYPEDEF: _type(1, Kind.TYPEDEF, 0, 1),
    Kind.VOLATILE: _type(0, Kind.VOLATILE, 0, 1),
    Kind.CONST: _type(0, Kind.CONST, 0, 1),
    Kind.RESTRICT: _type(0, Kind.PTR, 0, 1) + _type(0, Kind.RESTRICT, 0, 2),
    Kind.FUNC: _type(0, Kind.FUNC_PROTO, 0, 1) + _type(1, Kind.FUNC, _STATIC, 2),
    Kind.FUNC_PROTO: _type(0, Kind.FUNC_PROTO, 0, 1),
    Kind.VAR: _type(1, Kind.VAR, 0, 1, _STATIC),
    Kind.DATASEC: _type(1, Kind.VAR, 0, 1, _STATIC) + _type(1, Kind.DATASEC, 1, 4, 2, 0, 4),
    Kind.FLOAT: _type(1, Kind.FLOAT, 0, 4),
    Kind.DECL_TAG: _type(1, Kind.VAR, 0, 1, _STATIC) + _type(1, Kind.DECL_TAG, 0, 2, 0xFFFFFFFF),
    Kind.TYPE_TAG: _type(1, Kind.TYPE_TAG, 0, 1) + _type(0, Kind.PTR, 0, 2),
    Kind.ENUM64: _type(1, Kind.ENUM64, 1, 8, 1, 0, 0),
}


def kind_blob(kind: Kind) -> bytes:
    """BTF with types that use `kind`."""
    return _blob(_INT + _KINDS[kind])


def global_function_blob() -> bytes:
    """BTF with a function that says it is global (Linux 5.6, commit 51c39bb1d5d1)."""
    prototype = _type(0, Kind.FUNC_PROTO, 0, 1)
    return _blob(_INT + prototype + _type(1, Kind.FUNC, _GLOBAL, 2))


def question_mark_blob() -> bytes:
    """BTF of a section `?x` that is not used by default (Linux 6.9)."""
    variable = _type(1, Kind.VAR, 0, 1, _STATIC)
    return _blob(_INT + variable + _type(3, Kind.DATASEC, 1, 4, 2, 0, 4), b"\0x\0?x\0")


def context_tag_blob() -> bytes:
    """BTF of `int a(void *a)` (4) and `int b(void *b)` (6), with a parameter tagged `arg:ctx`."""
    names = b"\0a\0b\0arg:ctx\0"
    first, second, tag = 1, 3, 5
    return _blob(
        _INT
        + _type(0, Kind.PTR, 0, 0)
        + _type(0, Kind.FUNC_PROTO, 1, 1, first, 2)
        + _type(first, Kind.FUNC, _GLOBAL, 3)
        + _type(0, Kind.FUNC_PROTO, 1, 1, second, 2)
        + _type(second, Kind.FUNC, _GLOBAL, 5)
        + _type(tag, Kind.DECL_TAG, 0, 6, 0),
        names,
    )


def calling_a_function(helper: int) -> bytes:
    """A program with a function, at instruction 2, that passes its argument to a helper."""
    return pack([Instruction(CALL, 0, PSEUDO_CALL, 0, 1), Instruction(EXIT, 0, 0, 0, 0)]) + calling(
        helper
    )


def _blob(types: bytes, strings: bytes = b"\0x\0") -> bytes:
    header = struct.pack("=HBBIIIII", 0xEB9F, 1, 0, 24, 0, len(types), len(types), len(strings))
    return header + types + strings
