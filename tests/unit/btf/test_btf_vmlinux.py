"""This kernel's BTF: every type decodes, and bpftool reads the same."""

from __future__ import annotations

import re
import subprocess
from collections import defaultdict
from itertools import islice
from pathlib import Path

import pytest

from purebpf.btf.codec.codecs import codec
from purebpf.btf.types import kinds as types
from purebpf.btf.types.kinds import Kind
from purebpf.btf.types.parse import Btf

VMLINUX = Path("/sys/kernel/btf/vmlinux")


@pytest.fixture(scope="module")
def vmlinux():
    if not VMLINUX.exists():
        pytest.skip(f"no {VMLINUX}")
    return Btf(VMLINUX.read_bytes(), source=str(VMLINUX))


def line(btf, type_id):
    """A type as `bpftool btf dump format raw` prints it (7.1)."""
    t = btf.type(type_id)
    name = t.name or "(anon)"
    text = f"[{type_id}] {t.kind.name} "
    rows = []
    match t:
        case types.Int():
            names = [t.signed and "SIGNED", t.is_char and "CHAR", t.is_bool and "BOOL"]
            encoding = next(filter(None, names), "(none)")
            text += f"'{name}' size={t.size} bits_offset={t.offset} nr_bits={t.bits}"
            text += f" encoding={encoding}"
        case types.Ptr() | types.Const() | types.Volatile() | types.Restrict():
            text += f"'(anon)' type_id={t.type_id}"
        case types.Typedef() | types.TypeTag():
            text += f"'{name}' type_id={t.type_id}"
        case types.DeclTag():
            text += f"'{name}' type_id={t.type_id} component_idx={t.component}"
        case types.Array():
            text += f"'(anon)' type_id={t.element} index_type_id={t.index} nr_elems={t.count}"
        case types.Struct() | types.Union():
            text += f"'{name}' size={t.size} vlen={len(t.members)}"
            for m in t.members:
                row = f"'{m.name or '(anon)'}' type_id={m.type_id} bits_offset={m.bit_offset}"
                rows.append(row + (f" bitfield_size={m.bit_size}" if m.bit_size else ""))
        case types.Enum() | types.Enum64():
            sign = "SIGNED" if t.signed else "UNSIGNED"
            text += f"'{name}' encoding={sign} size={t.size} vlen={len(t.values)}"
            rows = [f"'{v.name}' val={v.value}" for v in t.values]
            rows = [row + ("ULL" if t.kind is Kind.ENUM64 else "") for row in rows]
        case types.Fwd():
            text += f"'{name}' fwd_kind={'union' if t.is_union else 'struct'}"
        case types.Func():
            text += f"'{name}' type_id={t.type_id} linkage={t.linkage.name.lower()}"
        case types.FuncProto():
            text += f"'(anon)' ret_type_id={t.return_type} vlen={len(t.params)}"
            rows = [f"'{p.name or '(anon)'}' type_id={p.type_id}" for p in t.params]
        case types.Var():
            linkage = {0: "static", 1: "global", 2: "extern"}[t.linkage]
            text += f"'{name}' type_id={t.type_id}, linkage={linkage}"
        case types.Float():
            text += f"'{name}' size={t.size}"
        case types.Datasec():
            text += f"'{name}' size={t.size} vlen={len(t.entries)}"
            rows = [f"type_id={e.type_id} offset={e.offset} size={e.size}" for e in t.entries]
    return "\n\t".join([text, *rows])


@pytest.mark.needs("bpftool", "vmlinux_btf")
def test_bpftool_reads_the_same(vmlinux):
    command = ["bpftool", "btf", "dump", "file", str(VMLINUX), "format", "raw"]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    theirs = re.split(r"\n(?=\[)", output.rstrip("\n"))
    assert len(theirs) == len(vmlinux) - 1
    kinds = set()
    for text in theirs:
        type_id = int(text[1 : text.index("]")])
        kind = vmlinux.kind(type_id)
        if type_id % 7 and kind in kinds:
            continue
        kinds.add(kind)
        text = re.sub(r"(type_id=\d+ offset=\d+ size=\d+) \(VAR '.*'\)", r"\1", text)
        assert line(vmlinux, type_id) == text
    assert {Kind.INT, Kind.STRUCT, Kind.FUNC_PROTO, Kind.ENUM, Kind.FUNC} < kinds


@pytest.mark.needs("vmlinux_btf")
def test_names_lead_to_their_types(vmlinux):
    ids = defaultdict(list)
    for type_id in range(1, len(vmlinux)):
        ids[vmlinux.name(type_id)].append(type_id)
    del ids[""]
    for name in list(ids)[::300]:
        expected = tuple(ids[name])
        assert vmlinux.find(name) == expected
        assert expected[0] in vmlinux.find(name, vmlinux.kind(expected[0]))


@pytest.mark.needs("vmlinux_btf")
def test_structs_have_codecs_that_keep_all_but_padding(vmlinux):
    structs = (i for i in range(1, len(vmlinux)) if vmlinux.kind(i) in (Kind.STRUCT, Kind.UNION))
    tried = 0
    for type_id in islice(structs, 0, None, 29):
        c = codec(vmlinux, type_id, key=True)
        if c.size <= 1 << 16:
            ones = c.encode(c.decode(b"\1" * c.size))
            assert c.encode(c.decode(ones)) == ones
            assert len(ones) == c.size == vmlinux.sizeof(type_id)
            tried += 1
    assert tried > 100
    task = codec(vmlinux, *vmlinux.find("task_struct", Kind.STRUCT))
    assert {"pid", "tgid", "comm", "real_parent"} < set(task.names)
