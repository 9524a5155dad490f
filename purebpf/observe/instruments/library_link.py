"""Links bpf_src/stack_library.bpf.c into other people's objects, for purebpf or another loader."""

from __future__ import annotations

from types import MappingProxyType

from purebpf import objects
from purebpf.abi.bpf import bpf_prog_type
from purebpf.abi.sections import BPF_F_SLEEPABLE
from purebpf.errors import LinkError
from purebpf.observe.instruments.call_graph import set_walking
from purebpf.relocate.join import call_library, calls_of, join
from purebpf.spec import MapSpec, ObjectSpec, ProgramSpec

__all__ = [
    "DIGEST",
    "LINKED_PREFIX",
    "PREFIX",
    "library_digest",
    "library_spec",
    "link_for_loaders",
    "link_library",
    "linked_library",
    "linked_section",
    "without_lookups",
]

PREFIX = "stacks."
"""Of the library's names in objects that purebpf loads: no name in C has a dot."""
LINKED_PREFIX = "pbs_"
"""Of its names in objects for other loaders, which make C of them. It is short: the kernel keeps 15
characters, by which `attach_to` tells the maps apart.
"""
DIGEST = "library_digest"
_COPIES = 1000
"""A second and CPU: events come in bursts, before a walk has its tables."""
_LOOKUP = "find_live_mapping"
_FINDS_NOTHING = bytes.fromhex("b700000004000000 9500000000000000")
"""r0 = WALK_UNKNOWN_MAPPING; exit"""
_USER, _KERNEL = "user_stack", "kernel_stack"
_BY_REGISTERS, _BY_TASK, _OF_KERNEL = (
    "user_stack_by_registers",
    "user_stack_by_task",
    "kernel_stack_here",
)
_WITH_REGISTERS = (bpf_prog_type.BPF_PROG_TYPE_PERF_EVENT, bpf_prog_type.BPF_PROG_TYPE_KPROBE)
_OF_TASKS = (
    bpf_prog_type.BPF_PROG_TYPE_TRACEPOINT,
    bpf_prog_type.BPF_PROG_TYPE_RAW_TRACEPOINT,
    bpf_prog_type.BPF_PROG_TYPE_TRACING,
)


def library_spec(
    capacity: int, namespace: tuple[int, int], *, finds_vma: bool = False
) -> ObjectSpec:
    """Return the library, configured but for the way to walk.

    Args:
        capacity: different stacks that there is room for.
        namespace: the pid namespace to number tasks in; (0, 0): the first one.
        finds_vma: whether the kernel has bpf_find_vma().
    """
    library = objects.spec("stack_library").only()
    library = library.set(
        finds_vma=finds_vma,
        copies_per_second=_COPIES,
        python=True,
        python_lines=True,
        pid_namespace_dev=namespace[0],
        pid_namespace_ino=namespace[1],
    )
    return library.resize(stacks=capacity)


def without_lookups(spec: ObjectSpec) -> ObjectSpec:
    """Return a spec that kernels without callbacks take (Linux 5.13, commit 69c087ba6225).

    They refuse the reference to the callback also where it is dead code.
    """
    lookup = spec.functions[_LOOKUP]
    lookup = lookup._replace(code=_FINDS_NOTHING, relocations=(), line_info=lookup.line_info[:1])
    return spec._replace(functions={**spec.functions, _LOOKUP: lookup})


def library_digest() -> int:
    """Return 64 bits that tell one version of the library from another."""
    import hashlib  # reads OpenSSL, which a load does not need

    data = objects.read("stack_library.spec")
    return int.from_bytes(hashlib.sha256(data).digest()[:8], "little")


def link_for_loaders(spec: ObjectSpec, call_graph: str, capacity: int) -> bytes:
    """Return an object file with the library, for libbpf and others: `StackLibrary.attach`.

    Raises:
        LinkError: as `link_library`.
        NotSupportedError: as `write_object`; or another machine than x86-64 and arm64.
    """
    from purebpf.elf.write import write_object

    library = set_walking(library_spec(capacity, (0, 0)), call_graph)
    library = library.set(library_digest=library_digest())
    if call_graph == "fp":  # for kernels before 5.15
        library = without_lookups(library)
    return write_object(_in_c(link_library(spec, library, LINKED_PREFIX)))


def linked_library(spec: ObjectSpec) -> ObjectSpec:
    """Return the library as `link_for_loaders` names its parts: without the object."""
    prefixed = {
        LINKED_PREFIX + name: each._replace(name=LINKED_PREFIX + name)
        for name, each in spec.maps.items()
    }
    variables = {
        LINKED_PREFIX + name: each._replace(name=LINKED_PREFIX + name, map=LINKED_PREFIX + each.map)
        for name, each in spec.variables.items()
    }
    return spec._replace(maps=prefixed, variables=variables)


def _in_c(spec: ObjectSpec) -> ObjectSpec:
    """Give the library's sections of variables names of their own, and its functions its prefix."""
    maps = {name: _with_section(name, each) for name, each in spec.maps.items()}
    functions = {
        key: each._replace(name=LINKED_PREFIX + each.name)
        if key.startswith(LINKED_PREFIX)
        else each
        for key, each in spec.functions.items()
    }
    return spec._replace(maps=MappingProxyType(maps), functions=functions)


def _with_section(name: str, spec_map: MapSpec) -> MapSpec:
    if spec_map.section and name.startswith(LINKED_PREFIX):
        return spec_map._replace(section=linked_section(spec_map.section))
    return spec_map


def linked_section(section: str) -> str:
    """Return the name that a section of the library's variables has in an object for others.

    cilium/ebpf does not know a section .bss of another name.
    """
    return f"{section.replace('.bss', '.data')}.purebpf"


def link_library(spec: ObjectSpec, library: ObjectSpec, prefix: str) -> ObjectSpec:
    """Return an object whose calls of <purebpf/stacks.h> lead to the library's functions.

    Args:
        spec: the object.
        library: the library, configured.
        prefix: for the library's names.

    Raises:
        LinkError: nothing calls them; a call from a function that is no program, or from a program
            of a type that has no stack to walk.
    """
    calls = calls_of(spec, (_USER, _KERNEL))
    if not any(calls.values()):
        problem = "no function of the object calls it: include <purebpf/stacks.h>"
        raise LinkError(spec.source, _USER, problem)
    spec = join(spec, library, (_BY_REGISTERS, _BY_TASK, _OF_KERNEL), prefix)
    spec = call_library(spec, _USER, lambda program: _function_for(spec, program), prefix)
    return call_library(spec, _KERNEL, lambda program: _kernel_for(spec, program), prefix)


def _function_for(spec: ObjectSpec, program: ProgramSpec) -> str:
    if program.type in _WITH_REGISTERS:
        return _BY_REGISTERS
    if program.type in _OF_TASKS and not program.flags & BPF_F_SLEEPABLE:
        return _BY_TASK
    raise LinkError(
        spec.source,
        _USER,
        f"program {program.name} ({program.section}) cannot walk stacks: the programs of perf "
        "events, uprobes, USDT probes, kprobes, tracepoints, raw tracepoints and functions of the "
        "kernel (fentry, fexit, tp_btf) can, unless they are sleepable",
    )


def _kernel_for(spec: ObjectSpec, program: ProgramSpec) -> str:
    _function_for(spec, program)  # the same programs can
    return _OF_KERNEL
