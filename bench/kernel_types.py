"""How many accesses of kernel code `purebpf types` gives a type, and how many types are right.

    python bench/kernel_types.py [--seconds 4] [--untyped 20] [find stat open mmap pipe udp fork]
    python bench/kernel_types.py --write FILE     # keeps the samples, too
    python bench/kernel_types.py --read FILE      # judges them again, on this boot of the kernel

Each workload spends its seconds of CPU time on one kind of system call. An access is a sample at an
instruction with a memory operand that is not on the stack. Right and wrong count the
claims of the code alone whose register leads into a slab cache of one struct, each instruction
once. `--untyped` lists the instructions without a type, the most frequent first.
Needs root, gcc, find, Linux 6.13 or newer, and the extra purebpf[types].
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from peers import workload

from purebpf.dataflow.claims import Claim, Unclaimed
from purebpf.dataflow.slab_evidence import Verdict
from purebpf.observe.instruments.kernel_data import KernelData
from purebpf.symbols.address_spaces import AddressSpaces
from purebpf.tools.sampleip.request import SampleIpOptions
from purebpf.tools.sampleip.session import Sampler
from purebpf.tools.sampleip.slab_objects import SlabObject
from purebpf.tools.types.attribute import CONTRADICTED, DataOfPrograms

KINDS = ("find", "stat", "open", "mmap", "pipe", "udp", "fork")
FREQUENCY = 2999
_MEMORY = frozenset(
    one.value
    for one in (
        *(Unclaimed.UNKNOWN_BASE, Unclaimed.UNKNOWN_VARIABLE, Unclaimed.INCOMPLETE),
        *(Unclaimed.OUTSIDE, Unclaimed.UNKNOWN_INDEX, Unclaimed.THREAD, Unclaimed.STRING),
        *(Unclaimed.SEVERAL_PATHS, Unclaimed.USER),
    )
) | {CONTRADICTED}
"""The reasons of accesses to memory that have no type."""


class Samples(NamedTuple):
    """Samples of the kernel: counts by address, and the objects of the registers there."""

    counts: dict[int, int]
    slabs: dict[int, Mapping[str, SlabObject]]


class Shares(NamedTuple):
    """The samples of one workload.

    Attributes:
        samples: all of them, in the kernel.
        off: taken when interrupts were on again.
        accesses: to memory other than the stack.
        user: accesses to the memory of programs.
        by_flow, with_slabs: accesses with a type, by the code alone, and with the slab caches.
        right, wrong: instructions whose type by the code a slab cache judged.
        errors: the wrong ones.
        untyped: samples without a type, by function, address and reason.
    """

    samples: int
    off: int
    accesses: int
    user: int
    by_flow: int
    with_slabs: int
    right: int
    wrong: int
    errors: list[str]
    untyped: Counter[tuple[str, int, str]]


def command(kind: str, program: str, seconds: float) -> list[str]:
    """The program that makes the calls."""
    if kind != "find":
        return [program, kind, str(seconds)]
    rounds = "while :; do find /usr /var /etc -newer /etc/passwd -size +1M >/dev/null; done"
    return ["timeout", str(2 * seconds), "sh", "-c", rounds]


def sample(words: list[str]) -> Samples:
    """Sample the kernel while a program runs."""
    with subprocess.Popen(words, stdout=subprocess.DEVNULL) as child:
        options = SampleIpOptions(
            counting=True, frequency=FREQUENCY, pids=(child.pid,), tree=True, map_entries=65536
        )
        with Sampler(options, has_slabs=True) as sampler:
            while child.poll() is None:
                sampler.drain()
                time.sleep(0.1)
            _, found = sampler.stop()
    counts = Counter[int]()
    for address, _, samples, _ in found.rows:
        if address >> 63:
            counts[address] += samples
    return Samples(dict(counts), dict(found.slabs))


def judge(samples: Samples, data: DataOfPrograms) -> Shares:
    """Type the samples of one workload."""
    total, off, accesses, user, by_flow, with_slabs = 0, 0, 0, 0, 0, 0
    verdicts: Counter[str] = Counter()
    errors, untyped = [], Counter[tuple[str, int, str]]()
    for address, count in samples.counts.items():
        first = answer = data.find(0, address)
        total += count
        off += count * (first.claim == Unclaimed.INTERRUPTS_OFF.value)
        objects = samples.slabs.get(address)
        if objects is not None:
            answer, verdict = data.weigh(address, first, objects)
            verdicts[verdict.value] += 1
            if verdict is Verdict.WRONG:
                claim = first.claim
                assert isinstance(claim, Claim)
                words = " ".join(
                    f"{name}={one.cache}+{one.offset}" for name, one in objects.items()
                )
                errors.append(f"{address:x} {first.function}: {claim.name}.{claim.member} {words}")
        if isinstance(first.claim, Claim) or first.claim in _MEMORY:
            accesses += count
            user += count * (first.claim == Unclaimed.USER.value)
            by_flow += count * isinstance(first.claim, Claim)
            with_slabs += count * isinstance(answer.claim, Claim)
            if not isinstance(first.claim, Claim):
                untyped[first.function, address, str(first.claim)] += count
    right, wrong = (verdicts[one.value] for one in (Verdict.RIGHT, Verdict.WRONG))
    return Shares(total, off, accesses, user, by_flow, with_slabs, right, wrong, errors, untyped)


def main(options: argparse.Namespace) -> int:
    """Print a row for each workload, and what has no type."""
    if options.read:
        stored = json.loads(options.read.read_text())
        samples = {kind: _restore(one) for kind, one in stored.items()}
    else:
        with tempfile.TemporaryDirectory() as folder:
            program = workload("kernel_calls", folder)
            samples = {
                kind: sample(command(kind, program, options.seconds)) for kind in options.kinds
            }
    if options.write:
        options.write.write_text(json.dumps({kind: _keep(one) for kind, one in samples.items()}))
    shares = {}
    with DataOfPrograms(AddressSpaces(), is_precise=False, is_live=True) as data:
        used = time.process_time()
        for kind, one in samples.items():
            shares[kind] = judge(one, data)
            print(_row(kind, shares[kind], time.process_time() - used), flush=True)
            used = time.process_time()
        show(shares.values(), options.untyped, data)
    return 0


def _row(kind: str, one: Shares, cpu_s: float) -> str:
    most = max(one.accesses, 1)
    return (
        f"{kind:5} {one.samples:6} samples, {100 * one.off / max(one.samples, 1):4.1f} % off, "
        f"{one.accesses:6} accesses: typed {100 * one.by_flow / most:4.1f} % by the code, "
        f"{100 * one.with_slabs / most:4.1f} % with slab caches, "
        f"{100 * one.with_slabs / max(one.accesses - one.user, 1):4.1f} % of the kernel's own; "
        f"judged {one.right} right, "
        f"{one.wrong} wrong; {cpu_s:.2f} s of CPU time"
    )


def show(shares: Iterable[Shares], most: int, data: DataOfPrograms) -> None:
    """Print the claims that are wrong, and the accesses without a type."""
    errors, untyped = set[str](), Counter[tuple[str, int, str]]()
    right = wrong = 0
    for one in shares:
        errors.update(one.errors)
        untyped.update(one.untyped)
        right, wrong = right + one.right, wrong + one.wrong
    print(f"all: {right} right, {wrong} wrong ({100 * right / max(right + wrong, 1):.2f} % right)")
    print("\n".join(sorted(errors)))
    for (function, address, reason), count in untyped.most_common(most):
        print(f"{count:6} {function} {address:x}: {reason}: {describe(data, address)}")


def describe(data: DataOfPrograms, address: int) -> str:
    """Return the instructions that a sample may belong to."""
    kernel = data._kernel  # noqa: SLF001
    assert isinstance(kernel, KernelData)
    flow = kernel.code(address).flow(address)
    if flow is None:
        return ""
    number = flow.code.index.get(address)
    before = [] if number is None else flow.code.before[number]
    return "; ".join(f"{flow.code.instructions[one]}" for one in before)


def _keep(samples: Samples) -> list[Any]:
    slabs = {at: {name: list(one) for name, one in o.items()} for at, o in samples.slabs.items()}
    return [list(samples.counts.items()), list(slabs.items())]


def _restore(stored: list[Any]) -> Samples:
    counts, slabs = stored
    objects = {at: {name: SlabObject(*one) for name, one in o.items()} for at, o in slabs}
    return Samples(dict(counts), objects)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("kinds", nargs="*", metavar="KIND", help="default: all")
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--untyped", type=int, default=0, metavar="N")
    parser.add_argument("--write", type=Path, metavar="FILE")
    parser.add_argument("--read", type=Path, metavar="FILE")
    options = parser.parse_args()
    options.kinds = options.kinds or KINDS
    sys.exit(main(options))
