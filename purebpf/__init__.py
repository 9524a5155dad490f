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
from purebpf.safe_path import refuse_unsafe

refuse_unsafe()

if TYPE_CHECKING:
    from purebpf import asm, build, report, stacks
    from purebpf.abi.perf import perf_event_sample_format
    from purebpf.abi.syscalls import name as syscall_name
    from purebpf.btf.codec.codecs import codec
    from purebpf.btf.codec.sums import summed
    from purebpf.btf.core.matching import match as match_core
    from purebpf.btf.types.parse import Btf
    from purebpf.elf import read_object
    from purebpf.errors import (
        AttachError,
        CompileError,
        CoreRelocationError,
        FormatError,
        KernelError,
        LinkError,
        NotSupportedError,
        PurebpfError,
        SchemaError,
        VerifierError,
    )
    from purebpf.filter import parse as parse_filter
    from purebpf.loader.attach.iterator import IteratorLink
    from purebpf.loader.features import features
    from purebpf.loader.load.load import load
    from purebpf.loader.load.object import Object
    from purebpf.loader.maps.map import Map
    from purebpf.loader.perf.perf_event import PerfEvent
    from purebpf.loader.programs import link_info
    from purebpf.loader.programs.link import Link
    from purebpf.loader.programs.program import Program
    from purebpf.loader.programs.statistics import run_time as run_time_statistics
    from purebpf.loader.rings.perf_buffer import PerfBuffer
    from purebpf.loader.rings.poll_readers import poll
    from purebpf.loader.rings.ring_buffer import RingBuffer
    from purebpf.loader.types.kernel_btf import kernel_btf
    from purebpf.observe.filters.sample_filter import SampleFilter
    from purebpf.observe.saved.profile_loader import read_profile
    from purebpf.observe.symbols.symbolizer import Symbolizer
    from purebpf.results.formats.writer import write as write_profile
    from purebpf.results.model.spelling import spell_location as format_frame
    from purebpf.results.shape.histogram import log2_lines as log2_histogram
    from purebpf.script.library import compile_script
    from purebpf.spec import MapSpec, ObjectSpec, ProgramSpec
    from purebpf.symbols.frame import Address, Frame, Unknown
    from purebpf.tools.script.running import run_script

__all__ = [
    "Address",
    "AttachError",
    "Btf",
    "CompileError",
    "CoreRelocationError",
    "FormatError",
    "Frame",
    "IteratorLink",
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
    "SampleFilter",
    "SchemaError",
    "Symbolizer",
    "Unknown",
    "VerifierError",
    "__version__",
    "asm",
    "build",
    "codec",
    "compile_script",
    "features",
    "format_frame",
    "kernel_btf",
    "link_info",
    "load",
    "log2_histogram",
    "match_core",
    "parse_filter",
    "perf_event_sample_format",
    "poll",
    "read_object",
    "read_profile",
    "report",
    "run_script",
    "run_time_statistics",
    "stacks",
    "summed",
    "syscall_name",
    "write_profile",
]

if not TYPE_CHECKING:  # a type checker would take any misspelt name for granted
    __getattr__ = names(
        __name__,
        {
            "Address": "purebpf.symbols.frame.Address",
            "AttachError": "purebpf.errors.AttachError",
            "Btf": "purebpf.btf.types.parse.Btf",
            "CompileError": "purebpf.errors.CompileError",
            "CoreRelocationError": "purebpf.errors.CoreRelocationError",
            "FormatError": "purebpf.errors.FormatError",
            "Frame": "purebpf.symbols.frame.Frame",
            "IteratorLink": "purebpf.loader.attach.iterator.IteratorLink",
            "KernelError": "purebpf.errors.KernelError",
            "Link": "purebpf.loader.programs.link.Link",
            "LinkError": "purebpf.errors.LinkError",
            "Map": "purebpf.loader.maps.map.Map",
            "MapSpec": "purebpf.spec.MapSpec",
            "NotSupportedError": "purebpf.errors.NotSupportedError",
            "Object": "purebpf.loader.load.object.Object",
            "ObjectSpec": "purebpf.spec.ObjectSpec",
            "PerfBuffer": "purebpf.loader.rings.perf_buffer.PerfBuffer",
            "PerfEvent": "purebpf.loader.perf.perf_event.PerfEvent",
            "Program": "purebpf.loader.programs.program.Program",
            "ProgramSpec": "purebpf.spec.ProgramSpec",
            "PurebpfError": "purebpf.errors.PurebpfError",
            "RingBuffer": "purebpf.loader.rings.ring_buffer.RingBuffer",
            "SampleFilter": "purebpf.observe.filters.sample_filter.SampleFilter",
            "SchemaError": "purebpf.errors.SchemaError",
            "Symbolizer": "purebpf.observe.symbols.symbolizer.Symbolizer",
            "Unknown": "purebpf.symbols.frame.Unknown",
            "VerifierError": "purebpf.errors.VerifierError",
            "asm": "purebpf.asm.",
            "build": "purebpf.build.",
            "codec": "purebpf.btf.codec.codecs.codec",
            "compile_script": "purebpf.script.library.compile_script",
            "features": "purebpf.loader.features.features.",
            "format_frame": "purebpf.results.model.spelling.spell_location",
            "kernel_btf": "purebpf.loader.types.kernel_btf.kernel_btf",
            "link_info": "purebpf.loader.programs.link_info.",
            "load": "purebpf.loader.load.load.load",
            "log2_histogram": "purebpf.results.shape.histogram.log2_lines",
            "match_core": "purebpf.btf.core.matching.match",
            "parse_filter": "purebpf.filter.parse",
            "perf_event_sample_format": "purebpf.abi.perf.perf_event_sample_format",
            "poll": "purebpf.loader.rings.poll_readers.poll",
            "read_object": "purebpf.elf.read_object",
            "read_profile": "purebpf.observe.saved.profile_loader.read_profile",
            "report": "purebpf.report.",
            "run_script": "purebpf.tools.script.running.run_script",
            "run_time_statistics": "purebpf.loader.programs.statistics.run_time",
            "stacks": "purebpf.stacks.",
            "summed": "purebpf.btf.codec.sums.summed",
            "syscall_name": "purebpf.abi.syscalls.name",
            "write_profile": "purebpf.results.formats.writer.write",
        },
    )


def __dir__() -> list[str]:
    return sorted(__all__)
