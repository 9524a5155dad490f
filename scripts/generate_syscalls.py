"""Generate `purebpf/abi/tables/syscalls_*.txt`: the names of system calls by number.

    python scripts/generate_syscalls.py --headers DIR     write the files
    python scripts/generate_syscalls.py --check [DIR]     compare with the headers of this machine

DIR is a tree of the kernel's exported headers with a folder for each architecture, as Debian's
linux-libc-dev has in /usr/lib/linux/uapi (since Linux 6.12). The parser is ours. The checked-in
files come from the newest headers at hand. Numbers are never given out twice, so older headers
know a subset and newer ones a superset; anything else is an error.
"""

from __future__ import annotations

import argparse
import platform
import re
import sys
from pathlib import Path

TARGET = Path(__file__).parent.parent / "purebpf/abi/tables"

HEADERS = {
    "x86_64": "x86/asm/unistd_64.h",
    "i386": "x86/asm/unistd_32.h",
    "x32": "x86/asm/unistd_x32.h",
    "aarch64": "arm64/asm/unistd_64.h",
    "arm": "arm/asm/unistd-eabi.h",
}
"""Where each ABI's numbers are, below the tree of exported headers."""

DEFINE = re.compile(
    r"^#define\s+__NR_(\w+)\s+\(?(?:__(?:X32_SYSCALL_BIT|NR_SYSCALL_BASE)\s*\+\s*)?(\d+)\)?\s*$",
    re.MULTILINE,
)


def parse(text: str) -> dict[int, str]:
    """The names that a header defines, by number."""
    return {int(number): name for name, number in DEFINE.findall(text)}


def tables(root: Path) -> dict[str, dict[int, str]]:
    """Every table that the headers below `root` have."""
    paths = {abi: root / path for abi, path in HEADERS.items()}
    return {abi: parse(path.read_text()) for abi, path in paths.items() if path.exists()}


def installed() -> dict[str, dict[int, str]]:
    """What this machine's own headers say of the x86 ABIs; empty on other machines."""
    if platform.machine() != "x86_64":
        return {}
    folder = Path("/usr/include/x86_64-linux-gnu/asm")
    names = {abi: folder / Path(path).name for abi, path in HEADERS.items() if "x86" in path}
    return {abi: parse(path.read_text()) for abi, path in names.items() if path.exists()}


def write(tables_by_abi: dict[str, dict[int, str]]) -> None:
    """Write a table for each ABI."""
    for abi, names in tables_by_abi.items():
        lines = (f"{number} {name}\n" for number, name in sorted(names.items()))
        (TARGET / f"syscalls_{abi}.txt").write_text("".join(lines))


def disagreements(theirs: dict[str, dict[int, str]]) -> list[str]:
    """Where the checked-in tables contradict headers: a number that means something else."""
    from purebpf.abi import syscalls

    return [
        f"{abi} {number}: {syscalls.table(abi)[number]} here, {name} in the headers"
        for abi, names in theirs.items()
        for number, name in names.items()
        if syscalls.table(abi).get(number, name) != name
    ]


def main() -> int:
    """Write or check."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--headers", type=Path, metavar="DIR")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    if options.check:
        theirs = tables(options.headers) if options.headers else installed()
        wrong = disagreements(theirs)
        print(*wrong, sep="\n") if wrong else print("syscall tables agree:", *theirs)
        return 1 if wrong else 0
    if options.headers is None:
        parser.error("--headers DIR, or --check")
    by_abi = tables(options.headers)
    if absent := HEADERS.keys() - by_abi.keys():
        parser.error(f"{options.headers} lacks the headers of {', '.join(sorted(absent))}")
    write(by_abi)
    return 0


if __name__ == "__main__":
    sys.exit(main())
