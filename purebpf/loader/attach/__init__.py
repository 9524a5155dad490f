"""Attaching, one module for each way to do it, chosen by the type of the program.

Every module but `query` has `attach(program, target, **options) -> Link`, and its docstring
describes the target; `struct_ops.attach` takes a map. A kind of program without a module is a
`NotSupportedError` that names the kind.
"""

from __future__ import annotations

from contextlib import ExitStack
from importlib import import_module
from typing import TYPE_CHECKING, Any

from purebpf.abi.bpf import bpf_attach_type, bpf_prog_type
from purebpf.abi.names import member_name
from purebpf.errors import FormatError, NotSupportedError, PurebpfError
from purebpf.loader.programs.link import Link
from purebpf.loader.programs.program import Program

if TYPE_CHECKING:
    from purebpf.loader.perf.probe_threads import ProbedThread

__all__ = ["attach", "attaches_itself"]

_MODULES: dict[int, str] = {
    bpf_prog_type.BPF_PROG_TYPE_PERF_EVENT: "perf_event",
    bpf_prog_type.BPF_PROG_TYPE_TRACEPOINT: "tracepoint",
    bpf_prog_type.BPF_PROG_TYPE_RAW_TRACEPOINT: "raw_tracepoint",
    bpf_prog_type.BPF_PROG_TYPE_RAW_TRACEPOINT_WRITABLE: "raw_tracepoint",
    bpf_prog_type.BPF_PROG_TYPE_TRACING: "tracing",
    bpf_prog_type.BPF_PROG_TYPE_LSM: "tracing",
    bpf_prog_type.BPF_PROG_TYPE_KPROBE: "kprobe",
    bpf_prog_type.BPF_PROG_TYPE_CGROUP_SKB: "cgroup",
    bpf_prog_type.BPF_PROG_TYPE_CGROUP_SOCK: "cgroup",
    bpf_prog_type.BPF_PROG_TYPE_CGROUP_SOCK_ADDR: "cgroup",
    bpf_prog_type.BPF_PROG_TYPE_CGROUP_SOCKOPT: "cgroup",
    bpf_prog_type.BPF_PROG_TYPE_CGROUP_SYSCTL: "cgroup",
    bpf_prog_type.BPF_PROG_TYPE_CGROUP_DEVICE: "cgroup",
    bpf_prog_type.BPF_PROG_TYPE_SOCK_OPS: "cgroup",
    bpf_prog_type.BPF_PROG_TYPE_SOCKET_FILTER: "socket",
    bpf_prog_type.BPF_PROG_TYPE_SK_REUSEPORT: "socket",
    bpf_prog_type.BPF_PROG_TYPE_SK_LOOKUP: "netns",
    bpf_prog_type.BPF_PROG_TYPE_FLOW_DISSECTOR: "netns",
    bpf_prog_type.BPF_PROG_TYPE_SK_MSG: "sockmap",
    bpf_prog_type.BPF_PROG_TYPE_SK_SKB: "sockmap",
    bpf_prog_type.BPF_PROG_TYPE_XDP: "xdp",
    bpf_prog_type.BPF_PROG_TYPE_SCHED_CLS: "tc",
    bpf_prog_type.BPF_PROG_TYPE_SCHED_ACT: "tc",
    bpf_prog_type.BPF_PROG_TYPE_LWT_IN: "lwt",
    bpf_prog_type.BPF_PROG_TYPE_LWT_OUT: "lwt",
    bpf_prog_type.BPF_PROG_TYPE_LWT_XMIT: "lwt",
    bpf_prog_type.BPF_PROG_TYPE_LWT_SEG6LOCAL: "lwt",
    bpf_prog_type.BPF_PROG_TYPE_LIRC_MODE2: "lirc",
    bpf_prog_type.BPF_PROG_TYPE_NETFILTER: "netfilter",
    bpf_prog_type.BPF_PROG_TYPE_EXT: "freplace",
}
_BY_SECTION = {
    "uprobe": "uprobe",
    "usdt": "usdt",
    "cgroup": "cgroup",
    "netkit": "netkit",
}
"""The modules for sections that say more than the program type: there are kprobe programs of many
kinds, and LSM programs of cgroups."""

_BY_ATTACH_TYPE: dict[int, str] = {
    bpf_attach_type.BPF_TRACE_ITER: "iterator",
    bpf_attach_type.BPF_TRACE_KPROBE_MULTI: "kprobe_multi",
    bpf_attach_type.BPF_TRACE_KPROBE_SESSION: "kprobe_multi",
    bpf_attach_type.BPF_TRACE_FENTRY_MULTI: "tracing_multi",
    bpf_attach_type.BPF_TRACE_FEXIT_MULTI: "tracing_multi",
    bpf_attach_type.BPF_TRACE_FSESSION_MULTI: "tracing_multi",
    bpf_attach_type.BPF_TRACE_UPROBE_MULTI: "uprobe_multi",
    bpf_attach_type.BPF_TRACE_UPROBE_SESSION: "uprobe_multi",
}
_OF_INTERFACES = {"xdp", "tc", "netkit"}
"""Modules with a target that belongs to a network namespace: they have the option `netns`."""

_OF_PROCESSES = {"uprobe", "uprobe_multi", "usdt"}
"""Modules whose option `pid` makes the kernel tie the program to a thread."""

_TEST_RUN_ONLY = bpf_prog_type.BPF_PROG_TYPE_SYSCALL


def attach(program: Program, target: Any = None, **options: Any) -> Link:
    """Attach `program` to `target`, or where its section says.

    For an interface (XDP, tc, netkit), `netns` is the network namespace that has it: a path such
    as `/run/netns/NAME` or `/proc/PID/ns/net`, or something with `fileno()`. The thread is in it
    while it attaches, which takes CAP_SYS_ADMIN.

    Raises:
        FormatError: without `target` and options: the section's target is malformed.
        TypeError: `replace` is not a program.
        As `Program.attach`.
    """
    way = program.definition.attach if program.definition is not None else ""
    name = (
        _BY_SECTION.get(way)
        or _BY_ATTACH_TYPE.get(program.attach_type)
        or _MODULES.get(program.type)
    )
    if name is None:
        raise NotSupportedError(f"attaching program {program.name!r}", _why_not(program))
    old = options.get("replace")
    if old is not None and not isinstance(old, Program):
        raise TypeError(_why_not_replaced(old))
    module = import_module(f"purebpf.loader.attach.{name}")
    try:
        with ExitStack() as stack:
            if name in _OF_INTERFACES and (netns := options.pop("netns", None)) is not None:
                _enter_namespace(netns, stack)
            is_of_thread = name in _OF_PROCESSES and options.get("pid", 0) > 0
            thread = _probed_thread(options["pid"]) if is_of_thread else None
            link: Link = module.attach(program, target, **options)
            link.thread = thread
    except ValueError as error:
        if target is not None or options or program.closed or isinstance(error, PurebpfError):
            raise
        # Nothing but the section is left to be malformed.
        source = f"program {program.name!r}"
        raise FormatError(source, f'SEC("{program.section}")', str(error)) from None
    return link


def _probed_thread(pid: int) -> ProbedThread:
    """Return the thread that the kernel will tie a probe of a process to."""
    from purebpf.loader.perf.probe_threads import ProbedThread

    return ProbedThread(pid)


def _why_not_replaced(old: object) -> str:
    """Return why no program can take the place of `old`, and the way to change a link."""
    advice = "; the program of a link is changed with link.update(program)"
    return f"replace= is the Program that is attached now, not {old!r}{advice}"


def _enter_namespace(netns: Any, stack: ExitStack) -> None:
    from purebpf.loader.attach._common.places import open_namespace
    from purebpf.syscall import network_namespace

    namespace = stack.enter_context(open_namespace(netns))
    stack.enter_context(network_namespace.inside(namespace.fileno()))


def attaches_itself(program: Program) -> bool:
    """Return True if the section name has everything that attaching needs, as
    `tp/sched/sched_switch` has.

    `perf_event` and `xdp` do not (which event, which interface?), and a bare `tp` does not either.
    As in libbpf, the answer is True for kinds that purebpf cannot attach yet: attaching them is an
    error.
    """
    return program.definition is not None and program.definition.auto and bool(program.target)


def _why_not(program: Program) -> str:
    if program.type == _TEST_RUN_ONLY:
        return "syscall programs have no attach point: run it with .test_run()"
    if program.type == bpf_prog_type.BPF_PROG_TYPE_STRUCT_OPS:
        return "a struct_ops map registers its programs: obj.maps[name].attach()"
    if program.definition is not None:
        kind = program.definition.prefix
        return f"purebpf does not attach {kind} programs yet; the descriptor is .fileno()"
    kind = member_name(bpf_prog_type, program.type)
    return f"purebpf does not attach {kind} programs yet; the descriptor is .fileno()"
