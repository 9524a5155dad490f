"""The commands that purebpf brings, grouped as `purebpf --help` lists them."""

from __future__ import annotations

__all__ = ["COMMANDS", "GROUPS", "SYMPTOMS", "package_of"]

GROUPS: dict[str, dict[str, str]] = {
    "Look first": {
        "triage": "the cause of a slow service: findings with cost and evidence",
        "top": "the functions that CPUs run now, in a terminal",
        "dump": "the present stack of every thread of a process, with Python frames",
        "doctor": "check what BPF can do on this machine for this user",
    },
    "CPU and waits": {
        "profile": "where CPUs spend their time, by stack",
        "offcpu": "where threads block, for how long, and which thread wakes them",
        "wall": "each thread's wall-clock time: on CPU, in the run queue, blocked",
        "lock": "waits for locks of the kernel or of programs, and who holds them",
        "latency": "how long functions take: histograms, slow calls, a call tree",
        "runqlat": "run queue latency, as a histogram",
        "cpudist": "time on or off the CPU, as a histogram",
        "types": "the structs and members that sampled code touches",
        "stat": "counts of events: CPU time, switches, faults, cycles, tracepoints",
        "kwork": "what the kernel does on its own: interrupts, softirqs, timers",
    },
    "What processes do": {
        "summary": "system calls: count, errors and latency",
        "trace": "system calls as they happen, with arguments and results by name",
        "exec": "processes as they start and end: arguments, status, lifetime",
        "open": "files as they are opened, failures first",
        "io": "block devices: latency by device, process or file",
        "tcp": "TCP connections: made, accepted, closed, failed; bytes and time",
        "mem": "memory by stack: not freed, allocated, grown, page faults",
    },
    "Saved profiles": {
        "record": "record samples in a perf.data file, with filters in the kernel",
        "report": "print the stacks of a perf.data file, in ten formats",
        "sampleip": "sample one function, module or address range",
        "convert": "convert a saved profile to another format",
        "diff": "compare two saved profiles",
        "view": "browse a folder of saved profiles, and compare two",
        "agent": "profiles this machine all the time, and sends the profiles",
        "fleet": "profiles of many hosts: a hub, a store, questions about any range",
    },
    "Write your own": {
        "script": "run a script in bpftrace's language, compiled here without LLVM",
        "new": "begin a BPF tool: C, Python, a test, packaging",
        "inspect": "show a BPF object file and its CO-RE relocations on a kernel",
        "vmlinux": "write the kernel's types as C: all, or only a source's",
        "setup": "let users without root filter samples in the kernel",
        "completion": "print completion for bash, zsh or fish",
    },
}
"""Each command and its task in less than a line, by the moment at which a person needs it."""

COMMANDS = {name: task for group in GROUPS.values() for name, task in group.items()}

SYMPTOMS = {
    "a slow service": "purebpf triage",
    "busy CPUs": "purebpf profile",
    "a program that waits": "purebpf offcpu -p PID",
    "a program that hangs": "purebpf dump PID",
    "memory that grows": "purebpf mem -p PID",
    "failing system calls": "purebpf summary -x",
    "a slow disk": "purebpf io",
    "failing connections": "purebpf tcp",
}
"""A person's observation, and the command to type."""

_SERVICES = ("agent", "fleet")


def package_of(name: str) -> str:
    """Return the package of a command, such as `purebpf.tools.profile`."""
    return f"purebpf.{'services' if name in _SERVICES else 'tools'}.{name}"
