"""docs/kernel_support.md, from what runs of the matrix left: kernel by feature, and by test file.

python -m tests.vm.support build/vm/{5.10,6.1,6.12,host,7.2,6.12-arm64} > docs/kernel_support.md

Folders of one kernel that ran in parts are brought together.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.vm import results
from tests.vm.results import File, Result

_HEAD = """\
# Kernel support

`python -m tests.vm.support` generates this page from runs of the test matrix (`make test-kernels
KERNELS=all`). purebpf promises nothing for kernels before 5.10.

The kernels are Debian's, as guests under QEMU's software emulation, and one of a virtual machine
without kprobes, modules and trampolines. All tests ran as root.

## Features

Each cell is the kernel's answer when purebpf tried the feature; versions play no part. **used**
means that a test of this run used the feature after the check. In the first rows, which are
requirements of tests, it means that a test with this requirement ran.

"""

_FILES = """
## Tests

Each cell has the passed and failed tests of a file, with the missing requirements of skipped tests
in brackets, and `-` if the file did not run. If a kernel is known to meet a requirement
(`tests/support/expected.py`), missing it fails the run.

Debian builds no kernel with programs for infrared receivers.
`kernel/loader/attach/test_attach_lirc` passed, 10 of 10, on a Linux 6.12.117 built for this test
([testing.md](testing.md)).

"""

_SKIPS = """
Reasons for skipped tests, in the words of the probe:

"""

_ARM64 = """
## Other architectures

The arm64 guest is a smoke test: load, relocate, attach to tracepoints, read maps, and the order of
ring buffer records under stress; on request, user stacks ([testing.md](testing.md)). QEMU with
`thread=single` runs its CPUs in turns, which hides the effects of weak memory ordering, so this
page makes no claim for the ring reader on real arm64 machines. The guest's Python is Debian's; its
packages are the host's, which are pure Python. big-endian and 32-bit machines were never tried.
"""


def page(kernels: list[Result]) -> str:
    """The page."""
    text = _HEAD + _table(["feature", *(kernel.release for kernel in kernels)])
    for name in dict.fromkeys(name for kernel in kernels for name in kernel.features):
        text += _row([name, *(_answer(kernel, name) for kernel in kernels)])
    text += _FILES + _table(["tests", *(kernel.release for kernel in kernels)])
    for name in sorted({name for kernel in kernels for name in kernel.files}):
        text += _row([name, *(results.cell(kernel.files.get(name)) for kernel in kernels)])
    text += _row(["**all**", *(_sum(kernel.total) for kernel in kernels)])
    text += _SKIPS
    for kernel in kernels:
        for why, count in kernel.skips.most_common():
            text += f"- {kernel.release}: {count} x {why}\n"
    return text + _ARM64


def _answer(kernel: Result, feature: str) -> str:
    if feature not in kernel.features:
        return "not asked"
    if not kernel.features[feature]:
        return "no"
    return "yes, used" if feature in kernel.used else "yes"


def _sum(total: File) -> str:
    told = zip(("passed", "failed", "skipped"), total, strict=False)
    return ", ".join(f"{count} {what}" for what, count in told)


def _table(columns: list[str]) -> str:
    return _row(columns) + _row(["---"] * len(columns))


def _row(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |\n"


def main(arguments: list[str]) -> int:
    """Read the folders of a run each and print the page."""
    if not arguments:
        print(__doc__, file=sys.stderr)
        return 2
    kernels: dict[str, Result] = {}
    for folder in arguments:
        found = results.read(Path(folder))
        before = kernels.get(found.release)
        kernels[found.release] = before.followed_by(found) if before else found
    print(page([*kernels.values()]), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
