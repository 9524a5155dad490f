"""The commands that purebpf brings, in the order in which `purebpf --help` lists them."""

from __future__ import annotations

__all__ = ["COMMANDS"]

COMMANDS = {
    "profile": "where the CPUs spend their time, by stack",
    "top": "the same in a terminal, as it happens",
    "offcpu": "where threads wait, for how long, and who ends it",
    "wall": "where each thread's time goes: running, waiting, asleep",
    "summary": "system calls: how many, how many failed, how long they took",
    "runqlat": "how long tasks wait for a CPU: a histogram",
    "cpudist": "how long tasks stay on a CPU, or off it: a histogram",
    "record": "samples into a perf.data file, through a filter in the kernel",
    "report": "a perf.data file as stacks with names, in ten formats",
    "sampleip": "samples in one function, module or range of addresses",
    "convert": "a saved profile in another format",
    "diff": "what changed between two saved profiles",
    "inspect": "what a BPF object file holds, and what a kernel makes of it",
    "doctor": "what works on this machine for this user, and what does not",
    "setup": "let ordinary users filter samples in the kernel",
    "completion": "completion of all this in bash, zsh or fish",
}
"""A package of purebpf with a `__main__`, and what it does in less than a line."""
