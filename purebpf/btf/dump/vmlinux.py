"""`vmlinux.h`: the types of a kernel for programs with CO-RE, all of them or a source's needs.

The types have preserve_access_index, so that loaders find their members on another kernel; the
functions that programs may call (kfuncs) are weak externs in .ksyms. libbpf's headers test for
`__VMLINUX_H__`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from purebpf.btf.dump.declarations import dump_c
from purebpf.btf.types import kinds
from purebpf.btf.types.kinds import Kind
from purebpf.btf.types.parse import Btf, ids_of

__all__ = ["vmlinux_h"]

_TOP = """\
#ifndef __VMLINUX_H__
#define __VMLINUX_H__

#ifndef BPF_NO_PRESERVE_ACCESS_INDEX
#pragma clang attribute push (__attribute__((preserve_access_index)), apply_to = record)
#endif

"""
_END = """\
#ifndef BPF_NO_PRESERVE_ACCESS_INDEX
#pragma clang attribute pop
#endif

#endif
"""
_KFUNC = '__attribute__((section(".ksyms"))) __attribute__((weak))'
_KFUNC_TAG = "bpf_kfunc"

_BASE_TYPES = (
    *("__u8", "__u16", "__u32", "__u64", "__s8", "__s16", "__s32", "__s64"),
    *("u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64", "bool", "size_t", "pid_t"),
    *("__be16", "__be32", "__be64", "__le16", "__le32", "__le64", "__wsum", "__sum16"),
)
_BASE_STRUCTS = ("pt_regs", "user_pt_regs", "bpf_iter_num")
_BASE_ENUMERATORS = ("BPF_MAP_TYPE_HASH", "BPF_ANY")
"""What headers that come after this one use."""

_COMMENTS = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_WORD = re.compile(r"\b[A-Za-z_]\w*\b")
_TAGGED = re.compile(r"\b(struct|union|enum)\s+([A-Za-z_]\w*)\b(\s*\{)?")
_ENUM_BODY = re.compile(r"\benum\b[\s\w]*\{(.*?)\}", re.DOTALL)
_TYPEDEF = re.compile(r"\btypedef\b[^;{]*(?:\{[^}]*\}[^;]*)?\b([A-Za-z_]\w*)\s*;")
_DEFINE = re.compile(r"^\s*#\s*define\s+([A-Za-z_]\w*)", re.MULTILINE)
_DECLARED = re.compile(r"\bextern\b[^;]*?\b([A-Za-z_]\w*)\s*\(")

_RECORDS = (Kind.STRUCT, Kind.UNION)
_ENUMS = (Kind.ENUM, Kind.ENUM64)
_KEYWORDS = {"struct": (Kind.STRUCT,), "union": (Kind.UNION,), "enum": _ENUMS}
_AROUND = (kinds.Const, kinds.Volatile, kinds.Restrict, kinds.Typedef, kinds.TypeTag, kinds.Ptr)


def vmlinux_h(btf: Btf, source: str | None = None) -> str:
    """The header.

    Args:
        btf: types of a kernel, or of a module on top of its kernel's.
        source: C that will include it, with its other headers: then only the types that it names
            are written, the targets of their members, and their parts. None: everything.

    Raises:
        FormatError: types that C cannot express.
    """
    kfuncs = {btf.name(type_id): type_id for type_id in _tagged_functions(btf)}
    wanted: list[int] = []  # every type
    if source is not None:
        text = _COMMENTS.sub(" ", source)
        words = frozenset(_WORD.findall(text))
        if not kfuncs:  # before pahole 1.26, which writes the tags
            kfuncs = _functions_by_name(btf, words)
        declared = {*_DECLARED.findall(text)}
        kfuncs = {name: kfuncs[name] for name in kfuncs if name in words and name not in declared}
        wanted = [*_reachable(btf, _named_types(btf, text, words), words)]
    types = dump_c(btf, wanted, functions=sorted(kfuncs.values()), of_functions=_KFUNC)
    return f"{_TOP}{types}{_END}"


def _is_named_type(btf: Btf, type_id: int) -> bool:
    kind = btf.kind(type_id)
    if kind in _ENUMS:
        return True
    return kind in (*_RECORDS, Kind.TYPEDEF) and bool(btf.name(type_id))


def _tagged_functions(btf: Btf) -> Iterator[int]:
    for tag_id in ids_of(btf, Kind.DECL_TAG):
        tag = btf.type(tag_id)
        if tag.name == _KFUNC_TAG and isinstance(tag, kinds.DeclTag):
            yield tag.type_id


def _functions_by_name(btf: Btf, words: Iterable[str]) -> dict[str, int]:
    """Functions of the kernel that may be kfuncs: those named as these are."""
    functions = {}
    for name in words:
        if name.startswith("bpf_") and (type_ids := btf.find(name, Kind.FUNC)):
            functions[name] = type_ids[0]
    return functions


def _named_types(btf: Btf, text: str, words: frozenset[str]) -> list[int]:
    """The types that a source names, and does not define itself."""
    tags = _TAGGED.findall(text)
    own = {(keyword, name) for keyword, name, body in tags if body}
    own_words = {*_TYPEDEF.findall(text), *_DEFINE.findall(text)}
    for body in _ENUM_BODY.findall(text):
        own_words.update(_WORD.findall(body))
    type_ids = [
        type_id
        for keyword, name, _ in tags
        if (keyword, name) not in own
        for type_id in btf.find(name.partition("___")[0], *_KEYWORDS[keyword])
    ]
    for name in _BASE_STRUCTS:
        type_ids += btf.find(name, Kind.STRUCT) if ("struct", name) not in own else ()
    names = {*_BASE_TYPES, *_BASE_ENUMERATORS, *words} - own_words
    for name in sorted(names):
        type_ids += btf.find(name, Kind.TYPEDEF)
    for kind in _ENUMS:
        for type_id in ids_of(btf, kind):
            enum = btf.type(type_id)
            assert isinstance(enum, (kinds.Enum, kinds.Enum64))
            if any(enumerator.name in names for enumerator in enum.values):
                type_ids.append(type_id)
    return type_ids


def _reachable(btf: Btf, type_ids: Iterable[int], words: frozenset[str]) -> dict[int, None]:
    """Yield these types, and the structs that their members of these names are, or point to."""
    wanted = dict.fromkeys(type_ids)
    waiting = [*wanted]
    while waiting:
        btf_type = btf.type(btf.resolve(waiting.pop()))
        if not isinstance(btf_type, (kinds.Struct, kinds.Union)):
            continue
        for member in btf_type.members:
            if member.name and member.name not in words:
                continue
            record = _record_behind(btf, member.type_id)
            if record and record not in wanted:
                wanted[record] = None
                waiting.append(record)
    return {type_id: None for type_id in wanted if _is_named_type(btf, type_id)}


def _record_behind(btf: Btf, type_id: int) -> int:
    """The struct or union that a type is, points to, or is an array of; 0: none."""
    btf_type = btf.type(type_id)
    while isinstance(btf_type, (*_AROUND, kinds.Array)):
        is_array = isinstance(btf_type, kinds.Array)
        type_id = btf_type.element if is_array else btf_type.type_id  # type: ignore[union-attr]
        btf_type = btf.type(type_id)
    return type_id if btf_type.kind in _RECORDS else 0
