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
from purebpf.lazy import names

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

if not TYPE_CHECKING:  # a type checker would take any misspelt name for granted
    __getattr__ = names(
        __name__,
        {
            "AttachError": "purebpf.errors.AttachError",
            "Btf": "purebpf.btf.parse.Btf",
            "CoreRelocationError": "purebpf.errors.CoreRelocationError",
            "FormatError": "purebpf.errors.FormatError",
            "KernelError": "purebpf.errors.KernelError",
            "Link": "purebpf.kernel.link.Link",
            "LinkError": "purebpf.errors.LinkError",
            "Map": "purebpf.kernel.map.Map",
            "MapSpec": "purebpf.spec.MapSpec",
            "NotSupportedError": "purebpf.errors.NotSupportedError",
            "Object": "purebpf.kernel.object.Object",
            "ObjectSpec": "purebpf.spec.ObjectSpec",
            "PerfBuffer": "purebpf.kernel.perf_buffer.PerfBuffer",
            "PerfEvent": "purebpf.kernel.perf_event.PerfEvent",
            "Program": "purebpf.kernel.program.Program",
            "ProgramSpec": "purebpf.spec.ProgramSpec",
            "PurebpfError": "purebpf.errors.PurebpfError",
            "RingBuffer": "purebpf.kernel.ring_buffer.RingBuffer",
            "SchemaError": "purebpf.errors.SchemaError",
            "Symbolizer": "purebpf.kernel.symbolizer.Symbolizer",
            "VerifierError": "purebpf.errors.VerifierError",
            "features": "purebpf.kernel.features.",
            "kernel_btf": "purebpf.kernel.btf.kernel_btf",
            "load": "purebpf.kernel.object.load",
            "match_core": "purebpf.btf.core.match",
            "read_object": "purebpf.elf.read_object",
            "report": "purebpf.report.",
        },
    )


def __dir__() -> list[str]:
    return sorted(__all__)
