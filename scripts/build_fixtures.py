"""Build the BPF objects that tests read, or prove that they are what clang makes of their sources.

    python3 scripts/build_fixtures.py            build into tests/data/
    python3 scripts/build_fixtures.py --check    build aside and compare byte for byte

Every `tests/data/**/NAME.bpf.c` (and `.target.c`) becomes `NAME.bpf.o` beside it, with the flags
of the shipped objects and those of EXTRA_FLAGS. A few objects are one source built another way,
or two linked by bpftool. Needs what build_objects.py needs, and bpftool. What only a newer clang
makes stays as it is where that is not installed.
"""

from __future__ import annotations

import argparse
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

sys.path.insert(0, str(Path(__file__).resolve().parent))

from build_objects import CLANG, FLAGS, ROOT, STRIP

DATA = ROOT / "tests/data"

EXTRA_FLAGS = {
    "attach_usdt": ("-D__TARGET_ARCH_x86",),
    "stacks_of_others": ("-idirafter", "purebpf/build/include"),
}
"""By name: what <bpf/bpf_tracing.h> needs for the layout of struct pt_regs; <purebpf/stacks.h>."""

VARIANTS = {
    "elf_big_endian": ("elf_functions", {"bpfel": "bpfeb"}),
    "elf_no_btf": ("elf_data", {"-g": "-g0"}),
    "load_unoptimised": ("load_advice", {"-O2": "-O0"}),
}
"""An object, the source it is of, and the flags that differ."""

NEWER = {"load_jump_tables": ("clang-22", {"-mcpu=v3": "-mcpu=v4"})}
"""An object, the compiler that it needs, and the flags that differ."""

LINKED = {"elf_linked": ("elf_link_a", "elf_link_b")}
"""An object, and those it was linked from; these are not kept."""


def compile_object(
    source: Path,
    target: Path,
    extra: tuple[str, ...] = (),
    changed: Mapping[str, str] = MappingProxyType({}),
    compiler: str = CLANG,
) -> None:
    """Compile one source; `changed` replaces flags."""
    system = f"/usr/include/{platform.machine()}-linux-gnu"
    flags = [changed.get(flag, flag).replace("$PWD", str(ROOT)) for flag in FLAGS]
    command = [compiler, *flags, *extra, "-Ibpf_src/include", f"-I{system}", "-c"]
    command += [str(source.relative_to(ROOT)), "-o", str(target)]
    subprocess.run(command, check=True, cwd=ROOT)
    subprocess.run([STRIP, "-g", str(target)], check=True)


def not_buildable() -> dict[str, str]:
    """The objects that need a compiler which is not installed, and that compiler."""
    return {name: clang for name, (clang, _) in NEWER.items() if shutil.which(clang) is None}


def build_all(output: Path) -> list[Path]:
    """Build every object below `output`: their paths, relative to it."""
    halves = {name for names in LINKED.values() for name in names}
    built: list[Path] = []
    for source in sorted(DATA.rglob("*.c")):
        name, _, kind = source.name.removesuffix(".c").partition(".")
        if kind not in {"bpf", "target"} or name in halves or name in not_buildable():
            continue
        target = source.relative_to(DATA).with_suffix(".o")
        (output / target).parent.mkdir(parents=True, exist_ok=True)
        compiler, changed = NEWER.get(name, (CLANG, {}))
        compile_object(source, output / target, EXTRA_FLAGS.get(name, ()), changed, compiler)
        built.append(target)
    for name, (source_name, changed) in VARIANTS.items():
        compile_object(DATA / f"{source_name}.bpf.c", output / f"{name}.bpf.o", changed=changed)
        built.append(Path(f"{name}.bpf.o"))
    for name, parts in LINKED.items():
        link(output / f"{name}.bpf.o", parts)
        built.append(Path(f"{name}.bpf.o"))
    return built


def link(target: Path, parts: tuple[str, ...]) -> None:
    """Compile `parts` and link them."""
    with tempfile.TemporaryDirectory() as scratch:
        objects = [Path(scratch) / f"{name}.bpf.o" for name in parts]
        for name, object_path in zip(parts, objects, strict=True):
            compile_object(DATA / f"{name}.bpf.c", object_path)
        subprocess.run(["bpftool", "gen", "object", target, *objects], check=True)


def check() -> int:
    """Rebuild aside and name every object that differs from the one in the tree."""
    with tempfile.TemporaryDirectory() as scratch:
        built = build_all(Path(scratch))
        stale = [
            path
            for path in built
            if not (DATA / path).exists()
            or (DATA / path).read_bytes() != (Path(scratch) / path).read_bytes()
        ]
    kept = {path.relative_to(DATA) for path in DATA.rglob("*.bpf.o")}
    for name, compiler in not_buildable().items():
        print(f"tests/data/{name}.bpf.o was not rebuilt: {compiler} is not installed")
        kept.discard(Path(f"{name}.bpf.o"))
    for path in [*stale, *sorted(kept - set(built))]:
        print(f"tests/data/{path} is not what {CLANG} makes of its source: run `make fixtures`")
    if stale or kept - set(built):
        return 1
    print(f"{len(built)} test object(s) rebuilt byte for byte")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description="Build the BPF objects that tests read.")
    parser.add_argument("--check", action="store_true", help="rebuild aside and compare")
    options = parser.parse_args()
    for program in (CLANG, STRIP, "bpftool"):
        if shutil.which(program) is None:
            print(f"{program} is not installed (Debian: clang-19 llvm-19 libbpf-dev bpftool)")
            return 2
    if options.check:
        return check()
    build_all(DATA)
    return 0


if __name__ == "__main__":
    sys.exit(main())
