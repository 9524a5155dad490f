"""How many types of `purebpf types` are wrong about a kernel module whose accesses are known.

    python bench/known_module.py write FOLDER [--functions 620] [--seed 11]
    make -C /lib/modules/RELEASE/build M=FOLDER
    python bench/known_module.py claim FOLDER [--out FILE]
    python bench/known_module.py compare FOLDER [--out FILE]

`write` makes a module of C functions with one access of one member on each line (those of
bench/known_accesses.py). `make` needs the headers of the kernel, and its vmlinux or BTF for the
module's BTF. `claim`, as root under that kernel, loads the module, reads its code as the kernel
relocated and patched it, and writes what each instruction touches. `compare` holds this against the
lines of the source. Its exit status is 1 if a type is wrong. Needs the extra purebpf[types].
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import re
import sys
from bisect import bisect_right
from collections import Counter
from pathlib import Path
from typing import Any

from elftools.elf.elffile import ELFFile

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.known_accesses import Source, lines_of
from purebpf.dataflow.claims import Claim
from purebpf.dataflow.layout import SEVERAL
from purebpf.observe.instruments.kernel_data import KernelData
from purebpf.syscall import proc

_INSERT = 313  # finit_module(2) on x86-64
_TAIL = """
#include <linux/module.h>
static unsigned char blob[1 << 16];
void *made(long key) { return blob; }
void used(void *p) { }
long (*volatile kept[])(void *, void *, long, void *) = {%s};
static int __init begin(void) { return 0; }
static void __exit end(void) { }
module_init(begin); module_exit(end); MODULE_LICENSE("GPL");
"""
_MAKEFILE = """obj-m := known.o
ccflags-y := -g -Wno-missing-prototypes -Wno-missing-declarations -Wno-error
"""


def write(folder: Path, functions: int, seed: int) -> None:
    """Write the module's source, and the member that each line touches."""
    source = Source(seed)
    source.add_functions(functions)
    names = ",".join(f"(void *)f{number}" for number in range(functions))
    text = "\n".join(source.lines).replace("struct node", "struct known_node")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "known.c").write_text(text + _TAIL % names)
    (folder / "Makefile").write_text(_MAKEFILE)
    lines = {line: [*member, source.pointers[line]] for line, member in source.members.items()}
    (folder / "members.json").write_text(json.dumps(lines))


def claim(folder: Path, out: Path) -> None:
    """Load the module, and write a line for each instruction: function, offset, claim."""
    fd = os.open(folder / "known.ko", os.O_RDONLY)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(_INSERT, fd, b"", 0):
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error), str(folder / "known.ko"))
    pattern = r"^([0-9a-f]+) [tT] (f\d+)\t\[known\]"
    symbols = re.findall(pattern, proc.kallsyms().decode(), re.MULTILINE)
    with KernelData() as data, out.open("w") as stream:
        for number, (address, name) in enumerate(symbols):
            start = int(address, 16)
            code = data.code(start)
            flow = code.flow(start)
            for one in flow.code.instructions if flow is not None else ():
                _, found = code.claim(one.ip, is_precise=True)
                named = (
                    [found.name, found.member]
                    if isinstance(found, Claim)
                    else str(getattr(found, "value", found))
                )
                stream.write(json.dumps([name, one.ip - start, named]) + "\n")
            if not number % 100:
                print(f"{number} of {len(symbols)} functions", flush=True)


def compare(folder: Path, out: Path) -> Counter[str]:
    """Print wrong claims, and count all by the answer."""
    members = json.loads((folder / "members.json").read_text())
    with (folder / "known.ko").open("rb") as stream:
        elf = ELFFile(stream)
        table: Any = elf.get_section_by_name(".symtab")
        starts = {symbol.name: symbol["st_value"] for symbol in table.iter_symbols()}
        places = sorted(dict(lines_of(elf)).items())
    counts = Counter[str]()
    for text in out.read_text().splitlines():
        name, offset, found = json.loads(text)
        line = places[bisect_right(places, (starts[name] + offset, 1 << 30)) - 1][1]
        known = members.get(str(line))
        if isinstance(found, str):
            counts[found] += 1
        elif known is None:
            counts["claims about lines without a member"] += 1
        else:
            struct, member, pointer = known
            is_right = found[0] == struct and found[1] in (member, SEVERAL)
            is_right |= not found[1] and found[0] == pointer
            counts["right" if is_right else "wrong"] += 1
            if not is_right:
                print(f"{name}+{offset:#x}: {'.'.join(found)}, not {struct}.{member}")
    return counts


def main(options: argparse.Namespace) -> int:
    """Return 1 if a claim is wrong."""
    out = options.out or options.folder / "claims.jsonl"
    if options.step == "write":
        write(options.folder, options.functions, options.seed)
    elif options.step == "claim":
        claim(options.folder, out)
    else:
        counts = compare(options.folder, out)
        for what, count in counts.most_common():
            print(f"{count:7} {what}")
        return 1 if counts["wrong"] else 0
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("step", choices=("write", "claim", "compare"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--functions", type=int, default=620)
    parser.add_argument("--seed", type=int, default=11)
    sys.exit(main(parser.parse_args()))
