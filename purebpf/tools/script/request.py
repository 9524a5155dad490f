"""`ScriptOptions`: a script, and how to run it."""

from __future__ import annotations

from collections.abc import Mapping

from purebpf.tuples import NamedTuple

__all__ = ["ScriptOptions"]


class ScriptOptions(NamedTuple):
    """A request of `purebpf script`.

    Attributes:
        text: the script itself, or None for a file.
        path: of the script; "-" for standard input.
        parameters: `$1` and so on.
        command: a command to run while the script is attached.
        pid: trace this process only; 0 for all.
        uid: trace tasks that run as this user only; None for all.
        cgroup: trace tasks in this cgroup v2 directory, and below it; None for all.
        duration_s: end after this time; None: at exit(), a signal, or the end of the process.
        output: a file for the script's output.
        is_json: print lines of JSON.
        is_quiet: say nothing but the script's own output.
        is_verbose: print the size of each program.
        is_dry: load and attach, but do not run.
        is_unsafe: allow functions that change the traced system.
        buffering: "line", "full" or "none".
        lists: list attach points that fit the pattern `path`, and run nothing.
        omits_warnings: print no warnings.
        shows_version: print the version, and run nothing.
        options: of the script by name, which getopt() reads.
        probe_filter: attach only the probes whose names match this regular expression.
        traceable_functions: a file with the kernel functions that can be traced; "": tracefs's.
        is_bpftrace: talk as bpftrace does.
        shows_info: print the features of this machine, and run nothing.
        mode: "bench": run the bench blocks only; "" for all others.
        build: write a file that runs the script on other machines, and run nothing.
    """

    text: str | None = None
    path: str = ""
    parameters: tuple[str, ...] = ()
    command: str = ""
    pid: int = 0
    uid: int | None = None
    cgroup: str | None = None
    duration_s: float | None = None
    output: str | None = None
    is_json: bool = False
    is_quiet: bool = False
    is_verbose: bool = False
    is_dry: bool = False
    is_unsafe: bool = False
    buffering: str = "line"
    shows_info: bool = False
    lists: bool = False
    omits_warnings: bool = False
    shows_version: bool = False
    options: Mapping[str, str | None] = {}
    probe_filter: str = ""
    traceable_functions: str = ""
    is_bpftrace: bool = False
    mode: str = ""
    build: str | None = None
