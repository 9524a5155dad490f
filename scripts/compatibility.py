"""Compare purebpf with libbpf on the objects inside Debian's libbpf-tools, and write the table.

    sudo python scripts/compatibility.py measure host.json           on this kernel
    python scripts/compatibility.py guest 6.12 guest.json            on another one, under QEMU
    python scripts/compatibility.py write host.json guest.json       docs/compatibility.md

Each object is loaded by libbpf, then by purebpf. The instructions are compared twice, without the
numbers of maps: as linked and relocated, which needs no kernel feature, and as the kernel reads
them back after the verifier, for objects that both load. Maps that the tool would size at run
time get the smallest size. Needs libbpf.so.1, libbpf-tools and root.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import purebpf  # noqa: E402 - the tree is on the path now
from purebpf.abi.bpf import bpf_map_type, bpf_prog_type  # noqa: E402
from purebpf.errors import errno_name  # noqa: E402
from purebpf.loader.load.kernel_types import KernelTypes  # noqa: E402
from purebpf.loader.programs.program import Program  # noqa: E402
from purebpf.relocate import Linker  # noqa: E402
from purebpf.spec import ObjectSpec  # noqa: E402
from purebpf.syscall.descriptor import Descriptor  # noqa: E402
from tests.kernel.loader.load.test_relocation_oracle import comparable  # noqa: E402
from tests.support.oracles import libbpf, libbpf_tools  # noqa: E402

PAGE = ROOT / "docs/compatibility.md"
HEAD = """# Compatibility

`scripts/compatibility.py` writes this page. It loads every BPF object inside the programs of
Debian's libbpf-tools package ({package}) with libbpf {libbpf} and with purebpf on the same
kernel. "linked" compares the instructions before loading, "translated" the instructions that the
kernel returns after its verifier. Both leave out the numbers of maps, which differ from load to
load.

[fuzzing.md](fuzzing.md) has the results of hours with damaged objects and types.
"""


def measure() -> dict[str, Any]:
    """What became of each object on this kernel."""
    rows = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, data in sorted(libbpf_tools.objects().items()):
            path = Path(folder) / f"{name}.bpf.o"
            path.write_bytes(data)
            rows[name] = row(path)
            print(f"{name}: {rows[name]}", file=sys.stderr)
    return {"kernel": os.uname().release, "objects": rows}


def row(path: Path) -> dict[str, str]:
    """One object: who loads it, and whether the instructions are the same."""
    spec = completed(purebpf.read_object(path))
    answers = {"linked": linked(path, spec)}
    theirs: Mapping[str, bytes] | None = None
    try:
        with libbpf.loaded(path) as programs:
            theirs = {name: translated(fd) for name, fd in programs.items()}
        answers["libbpf"] = "yes"
    except OSError as error:
        answers["libbpf"] = f"no: {errno_name(error.errno or 0)}"
    try:
        with purebpf.load(spec) as obj:
            ours = {name: comparable(program.xlated()) for name, program in obj.programs.items()}
        answers["purebpf"] = "yes"
    except purebpf.PurebpfError as error:
        answers["purebpf"] = f"no: {str(error).splitlines()[0]}"
        return answers
    if theirs is not None:
        answers["translated"] = "identical" if ours == theirs else "DIFFERENT"
    return answers


def linked(path: Path, spec: ObjectSpec) -> str:
    """Whether both make the same instructions of it."""
    try:
        theirs = {name: comparable(code) for name, code in libbpf.relocate(path).items()}
    except OSError as error:
        return f"libbpf: {error.strerror}"
    try:
        with KernelTypes(spec) as types:
            linker = Linker(spec, types.core_targets, types.extern)
            programs = [
                linker.link(name) for name, program in spec.programs.items() if program.autoload
            ]
    except purebpf.PurebpfError as error:
        return f"purebpf: {error}"
    ours = {
        program.name: comparable(program.bind(dict.fromkeys(program.maps, 0)))
        for program in programs
    }
    return "identical" if ours == theirs else "DIFFERENT"


def translated(fd: int) -> bytes:
    """The instructions of another loader's program, as the kernel shows them."""
    with Program(Descriptor(os.dup(fd)), "it", bpf_prog_type.BPF_PROG_TYPE_UNSPEC) as program:
        return comparable(program.xlated())


def completed(spec: ObjectSpec) -> ObjectSpec:
    """With sizes for the maps that the tool gives them, as tests/support/oracles/libbpf.py does."""
    maps = {}
    for name, map_spec in spec.maps.items():
        if map_spec.type in libbpf.TABLES and not map_spec.max_entries:
            map_spec = map_spec._replace(max_entries=1)
        if map_spec.type == bpf_map_type.BPF_MAP_TYPE_STACK_TRACE and not map_spec.value_size:
            map_spec = map_spec._replace(value_size=8)
        maps[name] = map_spec
    return spec._replace(maps=maps)


def guest(series: str, out: Path) -> int:
    """Measure on a kernel of the test matrix."""
    from tests.vm import guest as vm
    from tests.vm import kernels

    with tempfile.TemporaryDirectory() as folder:
        command = f"{sys.executable} scripts/compatibility.py measure /run/out/found.json"
        outcome = vm.run(kernels.fetch(series), command, Path(folder), timeout_s=_TIMEOUT_S)
        if outcome.status != 0:
            print(outcome.output or outcome.console, file=sys.stderr)
            return 1
        out.write_bytes((Path(folder) / "found.json").read_bytes())
    return 0


def page(tables: list[dict[str, Any]]) -> str:
    """The page."""
    package = libbpf_tools.version()
    lines = [HEAD.format(package=package, libbpf=libbpf.version())]
    for table in tables:
        lines += section(table["kernel"], table["objects"])
    return "\n".join(lines) + "\n"


def section(kernel: str, rows: Mapping[str, Mapping[str, str]]) -> list[str]:
    """One kernel: the counts, and a table of objects."""
    count = Counter(key for answers in rows.values() for key in answers if answers[key] in _GOOD)
    only_libbpf = [
        name for name, answers in rows.items() if answers["libbpf"] == "yes" != answers["purebpf"]
    ]
    summary = (
        f"{len(rows)} objects: linked identically {count['linked']}, loaded by libbpf "
        f"{count['libbpf']}, by purebpf {count['purebpf']}, translated identically "
        f"{count['translated']}; loaded by libbpf only: {', '.join(only_libbpf) or 'none'}."
    )
    heads = [
        "| object | linked | libbpf | purebpf | translated |",
        "| --- | --- | --- | --- | --- |",
    ]
    lines = [f"## Linux {kernel}", "", summary, "", *heads]
    for name, cells_by_key in rows.items():
        cells = [cells_by_key.get(key, "") for key in ("linked", "libbpf", "purebpf", "translated")]
        lines.append(f"| {name} | {' | '.join(cell.replace('|', '/') for cell in cells)} |")
    return [*lines, ""]


_TIMEOUT_S = 1500
_GOOD = frozenset({"yes", "identical"})


def main(arguments: list[str]) -> int:
    match arguments:
        case ["measure", out]:
            Path(out).write_text(json.dumps(measure(), indent=1) + "\n")
            return 0
        case ["guest", series, out]:
            return guest(series, Path(out))
        case ["write", *files] if files:
            PAGE.write_text(page([json.loads(Path(file).read_text()) for file in files]))
            return 0
    print(__doc__)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
