"""purebpf: load, attach and read BPF programs from pure Python.

    spec = purebpf.read_object("opensnoop.bpf.o")       # pure: no kernel, no root
    with purebpf.load(spec.set(target_pid=1234)) as obj:
        obj.attach()
        for event in obj.maps["events"].read(timeout=1.0):
            print(event.pid, event.comm)

Every name is imported when it is first used (PEP 562), so that `import purebpf` is cheap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from purebpf._version import __version__

if TYPE_CHECKING:
    from purebpf import report
    from purebpf.btf.core import match as match_core
    from purebpf.btf.parse import Btf
    from purebpf.elf import read_object
    from purebpf.errors import (
        AttachError,
        CoreRelocationError,
        FormatError,
        KernelError,
        LinkError,
        NotSupportedError,
        PurebpfError,
        SchemaError,
        VerifierError,
    )
    from purebpf.kernel import features
    from purebpf.kernel.btf import kernel_btf
    from purebpf.kernel.link import Link
    from purebpf.kernel.map import Map
    from purebpf.kernel.object import Object, load
    from purebpf.kernel.perf_buffer import PerfBuffer
    from purebpf.kernel.perf_event import PerfEvent
    from purebpf.kernel.program import Program
    from purebpf.kernel.ring_buffer import RingBuffer
    from purebpf.kernel.symbolizer import Symbolizer
    from purebpf.spec import MapSpec, ObjectSpec, ProgramSpec

__all__ = [
    "AttachError",
    "Btf",
    "CoreRelocationError",
    "FormatError",
    "KernelError",
    "Link",
    "LinkError",
    "Map",
    "MapSpec",
    "NotSupportedError",
    "Object",
    "ObjectSpec",
    "PerfBuffer",
    "PerfEvent",
    "Program",
    "ProgramSpec",
    "PurebpfError",
    "RingBuffer",
    "SchemaError",
    "Symbolizer",
    "VerifierError",
    "__version__",
    "features",
    "kernel_btf",
    "load",
    "match_core",
    "read_object",
    "report",
]

_HOMES = {
    "purebpf.btf.parse": ("Btf",),
    "purebpf.elf": ("read_object",),
    "purebpf.errors": (
        "AttachError",
        "CoreRelocationError",
        "FormatError",
        "KernelError",
        "LinkError",
        "NotSupportedError",
        "PurebpfError",
        "SchemaError",
        "VerifierError",
    ),
    "purebpf.kernel.btf": ("kernel_btf",),
    "purebpf.kernel.link": ("Link",),
    "purebpf.kernel.map": ("Map",),
    "purebpf.kernel.object": ("Object", "load"),
    "purebpf.kernel.perf_buffer": ("PerfBuffer",),
    "purebpf.kernel.perf_event": ("PerfEvent",),
    "purebpf.kernel.program": ("Program",),
    "purebpf.kernel.ring_buffer": ("RingBuffer",),
    "purebpf.kernel.symbolizer": ("Symbolizer",),
    "purebpf.spec": ("MapSpec", "ObjectSpec", "ProgramSpec"),
}
"""Where each public name lives under its own name."""

_RENAMED = {"match_core": ("purebpf.btf.core", "match")}
_MODULES = {"features": "purebpf.kernel.features", "report": "purebpf.report"}

if not TYPE_CHECKING:  # a type checker would take any misspelt name for granted

    def __getattr__(name: str) -> object:
        value = _find(name)
        globals()[name] = value
        return value


def _find(name: str) -> object:
    from importlib import import_module

    if name in _MODULES:
        return import_module(_MODULES[name])
    if name in _RENAMED:
        home, original = _RENAMED[name]
        return getattr(import_module(home), original)
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(home), name)
    raise AttributeError(f"module 'purebpf' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
