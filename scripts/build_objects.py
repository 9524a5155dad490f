"""Build the BPF objects that the wheel carries, or prove that they are what clang makes of the C.

    python3 scripts/build_objects.py            build into purebpf/objects/ and write LOCK
    python3 scripts/build_objects.py --check    build aside and compare byte for byte
    python3 scripts/build_objects.py --output D build into directory D

Every `bpf_src/NAME.bpf.c` becomes `purebpf/objects/NAME.bpf.o`. The bytes depend on the sources,
clang's version and the flags alone, not on where the tree is: see LOCK, which records all three.
Needs clang-19, llvm-strip-19 and libbpf's headers (Debian: clang-19, llvm-19, libbpf-dev).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(os.path.realpath(__file__)).parent.parent
CLANG = "clang-19"
STRIP = "llvm-strip-19"
FLAGS = (
    *("-g", "-O2", "-target", "bpfel", "-mcpu=v3", "-Wall", "-Werror", "-fno-ident"),
    *("-ffile-prefix-map=$PWD=.", "-fdebug-compilation-dir=."),
)
INCLUDE = re.compile(r'^#include "(.*)"', re.MULTILINE)


def sources(root: Path) -> list[Path]:
    """The programs, one an object, in the order of their names."""
    return sorted((root / "bpf_src").glob("*.bpf.c"))


def build(source: Path, target: Path, root: Path) -> None:
    """Compile one program; what is left is code, BTF and its line numbers.

    The system's headers live under the machine's name, which is not part of the result.
    """
    system = f"/usr/include/{platform.machine()}-linux-gnu"
    flags = [flag.replace("$PWD", str(root)) for flag in FLAGS]
    command = [CLANG, *flags, "-Ibpf_src/include", f"-I{system}", "-c"]
    command += [str(source.relative_to(root)), "-o", str(target)]
    subprocess.run(command, check=True, cwd=root, env={**os.environ, "PWD": str(root)})
    subprocess.run([STRIP, "-g", str(target)], check=True)


def build_all(root: Path, output: Path) -> None:
    """Build every object of the tree at `root`, and its LOCK, into `output`."""
    output.mkdir(parents=True, exist_ok=True)
    objects: dict[str, dict[str, object]] = {}
    for source in sources(root):
        target = output / source.name.replace(".bpf.c", ".bpf.o")
        build(source, target, root)
        objects[target.name] = {
            "sha256": digest(target),
            "sources": source_digests(source, root),
        }
    lock = {"clang": clang_version(), "flags": list(FLAGS), "objects": objects}
    (output / "LOCK").write_text(json.dumps(lock, indent=1) + "\n")


def source_digests(source: Path, root: Path) -> dict[str, str]:
    """The sha256 of a program and of the headers of ours that it includes, and they in turn."""
    digests = {source: digest(source)}
    places = [source]
    while places:
        place = places.pop()
        for name in INCLUDE.findall(place.read_text()):
            beside = place.parent / name
            header = beside if beside.exists() else root / "bpf_src/include" / name
            if header not in digests:
                digests[header] = digest(header)
                places.append(header)
    return {str(path.relative_to(root)): digests[path] for path in sorted(digests)}


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def clang_version() -> str:
    """The compiler's release: `19.1.7`. The distribution's suffix does not change the code."""
    answer = subprocess.run([CLANG, "--version"], check=True, capture_output=True, text=True)
    version = re.search(r"clang version (\d+\.\d+\.\d+)", answer.stdout)
    if version is None:
        raise SystemExit(f"{CLANG} --version says {answer.stdout!r}")
    return version.group(1)


def check(shipped: Path) -> int:
    """Rebuild aside and name every file that differs from the one in the tree."""
    with tempfile.TemporaryDirectory() as scratch:
        built = Path(scratch)
        build_all(ROOT, built)
        names = {path.name for place in (built, shipped) for path in place.glob("*.bpf.o")}
        names.add("LOCK")
        stale = [name for name in sorted(names) if not _same(built / name, shipped / name)]
    for name in stale:
        print(f"purebpf/objects/{name} is not what {CLANG} makes of bpf_src/: run `make bpf`")
    if not stale:
        print(f"{len(names) - 1} object(s) rebuilt byte for byte")
    return 1 if stale else 0


def _same(left: Path, right: Path) -> bool:
    return left.exists() and right.exists() and left.read_bytes() == right.read_bytes()


def main() -> int:
    parser = argparse.ArgumentParser(description="Build the BPF objects of purebpf.")
    parser.add_argument("--check", action="store_true", help="rebuild aside and compare")
    parser.add_argument("--output", type=Path, default=ROOT / "purebpf/objects")
    options = parser.parse_args()
    for program in (CLANG, STRIP):
        if shutil.which(program) is None:
            print(
                f"{program} is not installed (Debian: apt-get install clang-19 llvm-19 libbpf-dev)"
            )
            return 2
    if options.check:
        return check(options.output)
    build_all(ROOT, options.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
