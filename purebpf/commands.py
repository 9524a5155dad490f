"""The commands that purebpf brings, in the order in which `purebpf --help` lists them."""

from __future__ import annotations

__all__ = ["COMMANDS", "package_of"]

COMMANDS = {
    "triage": "the cause of a slow service: findings with cost, evidence and command",
    "profile": "where CPUs spend their time, by stack",
    "top": "the functions that CPUs run now, in a terminal",
    "offcpu": "where threads block, for how long, and which thread wakes them",
    "wall": "each thread's wall-clock time: on CPU, in the run queue, blocked",
    "dump": "the present stack of every thread of a process, Python too",
    "stat": "counts of events: CPU time, switches, faults, cycles, tracepoints",
    "summary": "system calls: count, errors and latency",
    "trace": "system calls as they happen, with arguments and results by name",
    "exec": "processes as they start and end: arguments, status, lifetime",
    "open": "files as they are opened, failures first",
    "io": "block devices: latency by device, process or file",
    "latency": "how long functions take: histograms, slow calls, a call tree",
    "lock": "waits for locks of the kernel or of programs, and who holds them",
    "kwork": "what the kernel does on its own: interrupts, softirqs, timers",
    "tcp": "TCP connections: made, accepted, closed, failed; bytes and time",
    "mem": "memory by stack: not freed, allocated, grown, page faults",
    "runqlat": "run queue latency, as a histogram",
    "cpudist": "time on or off the CPU, as a histogram",
    "agent": "profiles this machine all the time, and sends what it finds",
    "fleet": "profiles of many hosts: a hub, a store, questions about any range",
    "record": "record samples in a perf.data file, with filters in the kernel",
    "report": "print the stacks of a perf.data file, in ten formats",
    "sampleip": "sample one function, module or address range",
    "convert": "convert a saved profile to another format",
    "diff": "compare two saved profiles",
    "view": "browse a folder of saved profiles, and compare two",
    "inspect": "show a BPF object file and its CO-RE relocations on a kernel",
    "vmlinux": "write the kernel's types as C: all, or what a source needs",
    "new": "begin a BPF tool: C, Python, a test, packaging",
    "doctor": "check what BPF can do on this machine for this user",
    "setup": "let users without root filter samples in the kernel",
    "completion": "print completion for bash, zsh or fish",
}
"""Each command and its task in less than a line."""

_SERVICES = ("agent", "fleet")


def package_of(name: str) -> str:
    """Return the package of a command, such as `purebpf.tools.profile`."""
    return f"purebpf.{'services' if name in _SERVICES else 'tools'}.{name}"
