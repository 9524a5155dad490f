"""BTF in the words of an older kernel: each kind that it refuses becomes one that it knows.

Ids do not change, so maps, programs and .BTF.ext need no change; only details are lost that such a
kernel has no use for. The replacements have the same length and follow libbpf's
(bpf_object__sanitize_btf), which has tried them on every kernel since 4.18. Later additions:

    FUNC, FUNC_PROTO  commit 2667a2626f4d, "bpf: btf: Add BTF_KIND_FUNC and BTF_KIND_FUNC_PROTO"
    VAR, DATASEC      commit 1dc92851849c, "bpf: kernel side support for BTF Var and DataSec"
    global functions  commit 51c39bb1d5d1
    FLOAT             commit b1828f0b0482, "bpf: Add BTF_KIND_FLOAT support"
    DECL_TAG          commit b5ea834dde6b, "bpf: Support for new btf kind BTF_KIND_TAG"
    TYPE_TAG          commit 8c42d2fa4eea, "bpf: Support BTF_KIND_TYPE_TAG for btf_type_tag ..."
    ENUM64            commit 6089fb325cf7, "bpf: Add btf enum64 support"
    `?` in names      commit bd70a8fb7ca4, "bpf: Allow all printable characters in BTF DATASEC ..."
"""

from __future__ import annotations

import re
import struct
from array import array
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from typing import TypeAlias

from purebpf.btf.types.decode import VLEN
from purebpf.btf.types.kinds import Kind, Linkage
from purebpf.btf.types.parse import Btf, starts

__all__ = ["has_question_marks", "kinds_of", "simplify"]

_HEADER = struct.Struct("=HBBIIIII")
_HEADER_SIZE = 24
_NOT_A_NAME = re.compile(r"\W")
_PLACEHOLDER_BITS = 64

_Words: TypeAlias = "array[int]"


def kinds_of(btf: Btf) -> set[Kind]:
    """The kinds that occur."""
    return {btf.kind(type_id) for type_id in range(1, len(btf))}


def has_question_marks(btf: Btf) -> bool:
    """Return True if a section's name begins with `?`, as for struct_ops that are not used by
    default.
    """
    return any(
        btf.kind(type_id) is Kind.DATASEC and btf.name(type_id).startswith("?")
        for type_id in range(1, len(btf))
    )


def simplify(
    btf: Btf,
    refused: AbstractSet[Kind],
    *,
    global_functions: bool,
    question_marks: bool = True,
) -> bytes:
    """`btf`, of this machine's byte order, without the kinds in `refused`.

    Without `global_functions`, all functions are static; without `question_marks`, sections called
    `?...` are called `_...`.
    """
    _, _, _, header, type_at, type_size, text_at, text_size = _HEADER.unpack_from(btf.data)
    text = bytearray(btf.data[header + text_at : header + text_at + text_size])
    words: _Words = array("I", btf.data[header + type_at : header + type_at + type_size])
    placeholder = len(btf)
    replacements: dict[Kind, Callable[[int], None]] = {
        Kind.VAR: lambda at: _to_int(words, at),
        Kind.DECL_TAG: lambda at: _to_int(words, at),
        Kind.DATASEC: lambda at: _to_struct(words, at, btf, text),
        Kind.FUNC: lambda at: _retype(words, at, Kind.TYPEDEF, vlen=0),
        Kind.FUNC_PROTO: lambda at: _to_enum(words, at),
        Kind.FLOAT: lambda at: _retype(words, at, Kind.STRUCT, vlen=0),
        Kind.TYPE_TAG: lambda at: _to_const(words, at),
        Kind.ENUM64: lambda at: _to_union(words, at, placeholder),
    }
    for type_id, at in enumerate(starts(btf), 1):
        info, kind = words[at + 1], btf.kind(type_id)
        if kind in refused and kind in replacements:
            replacements[kind](at)
        elif kind is Kind.FUNC and not global_functions and info & VLEN == Linkage.GLOBAL:
            _retype(words, at, Kind.FUNC, vlen=Linkage.STATIC)
        elif kind is Kind.DATASEC and not question_marks:
            _without_question_mark(words, at, btf, text)
    if Kind.ENUM64 in refused:
        name = len(text)
        text += b"enum64_placeholder\0"
        words.extend((name, Kind.INT << 24, _PLACEHOLDER_BITS // 8, _PLACEHOLDER_BITS))
    types = words.tobytes()
    fields = (0xEB9F, 1, 0, _HEADER_SIZE, 0, len(types), len(types), len(text))
    return _HEADER.pack(*fields) + types + text


def _without_question_mark(words: _Words, at: int, btf: Btf, text: bytearray) -> None:
    name = btf.string(words[at])
    if name.startswith("?"):
        words[at] = len(text)
        text += f"_{name[1:]}".encode() + b"\0"


def _retype(words: _Words, at: int, kind: Kind, *, vlen: int) -> None:
    words[at + 1] = kind << 24 | vlen


def _to_int(words: _Words, at: int) -> None:
    """One byte: a larger one might not fit where the variable was."""
    _retype(words, at, Kind.INT, vlen=0)
    words[at + 2 : at + 4] = array("I", (1, 8))


def _to_struct(words: _Words, at: int, btf: Btf, text: bytearray) -> None:
    """The section's variables become members: (type, offset, size) to (name, type, bits)."""
    vlen = words[at + 1] & VLEN
    name = _NOT_A_NAME.sub("_", btf.string(words[at]))
    words[at] = len(text)
    text += name.encode() + b"\0"
    _retype(words, at, Kind.STRUCT, vlen=vlen)
    for entry in range(at + 3, at + 3 + 3 * vlen, 3):
        variable, offset = words[entry], words[entry + 1]
        member = len(text)
        text += btf.name(variable).encode() + b"\0"
        words[entry : entry + 3] = array("I", (member, variable, offset * 8))


def _to_enum(words: _Words, at: int) -> None:
    """The parameters become enumerators: (name, type) to (name, value)."""
    _retype(words, at, Kind.ENUM, vlen=words[at + 1] & VLEN)
    words[at + 2] = 4


def _to_const(words: _Words, at: int) -> None:
    words[at] = 0
    _retype(words, at, Kind.CONST, vlen=0)


def _to_union(words: _Words, at: int, placeholder: int) -> None:
    """The enumerators become members: (name, low, high) to (name, type, bits)."""
    vlen = words[at + 1] & VLEN
    _retype(words, at, Kind.UNION, vlen=vlen)
    for entry in range(at + 3, at + 3 + 3 * vlen, 3):
        words[entry + 1 : entry + 3] = array("I", (placeholder, 0))
