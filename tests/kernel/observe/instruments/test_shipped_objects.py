"""The verifier takes every shipped object under each setting of its constants, one at a time.

The objects say which constants there are, so a new one is covered as soon as it is in an object. An
emulated verifier needs half an hour for all of them: guests try each object with its first values,
and with each value of its choices and every flag on. With `PUREBPF_CONSTANTS=every` they try one
constant after the other, too, and all choices together.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, product, zip_longest

import pytest

import purebpf
from purebpf import objects
from purebpf.btf.types.kinds import Int
from purebpf.btf.types.parse import Btf
from purebpf.loader.types.kernel_btf import no_types
from purebpf.observe.instruments import sched_compat
from purebpf.observe.instruments.call_graph import without_fetch
from purebpf.observe.instruments.library_link import without_lookups
from purebpf.observe.unwind.native_machine import native_code_bits
from purebpf.spec import ObjectSpec
from purebpf.tools.io.session import programs as io_programs
from purebpf.tools.kwork.request import PROGRAMS
from purebpf.tools.kwork.session import supported_kinds
from purebpf.tools.summary.loading import HOOKS, ITERATOR
from tests.support.host.faults import slow_host

pytestmark = [pytest.mark.needs("bpf"), pytest.mark.guests_by_day]

SMALL = 64  # entries: what the maps hold is not looked at
EVERY_CONSTANT = os.environ.get("PUREBPF_CONSTANTS") == "every" or not slow_host()
MODES = range(4)  # enum mode of summary.bpf.c
MEASURES = range(3)  # enums measure and grouping of spans.bpf.c
GROUPINGS = range(5)
TASK_STORAGE = "task_storage"
MACHINE = {TASK_STORAGE, "has_prev_state", "task_pt_regs", "arm64_code_bits"}
"""Constants that say what the kernel has: it may be said not to have it, not the reverse."""


def small(spec: ObjectSpec) -> ObjectSpec:
    """`spec` with little room in its maps, as long as the programs do not need it."""
    large = {name: SMALL for name, each in spec.maps.items() if each.max_entries > 1000}
    if "arm64_code_bits" in spec.variables:
        spec = spec.set(arm64_code_bits=native_code_bits())
    return spec.resize(**large)


def extremes(spec: ObjectSpec) -> Iterator[ObjectSpec]:
    """As it is, and with all flags on."""
    yield spec
    flags = [name for name, value in _constants(spec) if isinstance(value, bool)]
    yield spec.set(**{name: True for name in flags if name not in MACHINE})


def changes(spec: ObjectSpec) -> Iterator[ObjectSpec]:
    """Each constant changed by itself."""
    before = dict(_constants(spec))
    for name, value in before.items():
        if name == TASK_STORAGE and value:
            yield sched_compat.without_task_storage(spec)
        elif name not in MACHINE or value:
            yield spec.set(**{name: not value})


def _constants(spec: ObjectSpec) -> Iterator[tuple[str, int | bool]]:
    """Flags, and numbers that are 0 unless something is asked for, by name."""
    assert spec.btf is not None
    for name, each in spec.variables.items():
        kind = spec.btf.type(spec.btf.resolve(each.type_id))
        if each.map != ".rodata" or not isinstance(kind, Int):
            continue
        image = spec.maps[each.map].contents[each.offset : each.offset + each.size]
        value = int.from_bytes(image, spec.byteorder)
        if kind.is_bool or not value:
            yield name, bool(value) if kind.is_bool else value


CALL_GRAPHS = (1, 0, 2)
"""By tables, as commands do unless they are asked for another way; by frame pointers; by copies."""


def every(name: str) -> ObjectSpec:
    """An object with the programs that are loaded only when they are asked for."""
    spec = objects.spec(name)
    return spec.only(*spec.programs)


def load_each(spec: ObjectSpec, types: Btf | None = None, **choices: Iterable[int]) -> None:
    """Load it with its flags, and with `choices` of constants that are not flags."""
    spec = small(spec)
    if "call_graph" in spec.variables:
        spec = spec.set(call_graph=CALL_GRAPHS[0])
        choices = {"call_graph": CALL_GRAPHS} | choices
    if EVERY_CONSTANT:
        variants = chain(changes(spec), *map(extremes, _combined(spec, choices, product)))
    else:
        first, *others = _combined(spec, choices, zip_longest)
        variants = chain(extremes(first), (list(extremes(other))[-1] for other in others))
    for variant in variants:
        with purebpf.load(variant, btf=types) as loaded:
            assert loaded.programs.keys() == spec.programs.keys()


def _combined(
    spec: ObjectSpec,
    choices: Mapping[str, Iterable[int]],
    combine: Callable[..., Iterable[tuple[int | None, ...]]],
) -> Iterator[ObjectSpec]:
    """With the values that `combine` takes from the choices; None leaves what is set."""
    for values in combine(*choices.values()) if choices else [()]:
        chosen = zip(choices, values, strict=True)
        yield spec.set(**{name: value for name, value in chosen if value is not None})


@pytest.mark.needs("perf_event", "atomic_fetch")
def test_profile_loads():
    load_each(objects.spec("profile").only("on_sample"))


@pytest.mark.needs("perf_event", "vmlinux_btf", "atomic_fetch")
def test_profile_loads_with_a_typed_context():
    load_each(objects.spec("profile").only("on_sample_typed"))


@pytest.mark.needs("perf_event")
def test_profile_by_frame_pointers_loads():
    load_each(objects.spec("profile").only("on_sample_fp"), leaf_words=(0, 1))


@pytest.mark.needs("perf_event", "vmlinux_btf")
def test_profile_by_frame_pointers_loads_with_a_typed_context():
    load_each(objects.spec("profile").only("on_sample_typed_fp"), leaf_words=(0, 1))


@pytest.mark.needs("perf_event", "x86_64")
def test_sampleip_loads():
    load_each(objects.spec("sampleip").only("on_sample"))


@pytest.mark.needs("perf_event", "x86_64", "vmlinux_btf")
def test_sampleip_loads_with_a_typed_context():
    load_each(objects.spec("sampleip").only("on_sample_typed"))


@pytest.mark.needs("perf_event", "x86_64")
def test_programs_around_an_own_program_load():
    load_each(every("own_program"))
    load_each(objects.spec("sampleip").only("is_inside"))
    load_each(objects.spec("profile").only("is_wanted"))


@pytest.mark.needs("perf_event", "x86_64", "vmlinux_btf")
def test_programs_around_an_own_program_load_with_a_typed_context():
    load_each(objects.spec("sampleip").only("is_inside_typed"))
    load_each(objects.spec("profile").only("is_wanted_typed"))


@pytest.mark.needs("vmlinux_btf")
def test_cpu_shares_loads():
    load_each(every("cpu_shares"))


@pytest.mark.needs("perf_event", "x86_64", "vmlinux_btf", "task_pt_regs")
def test_stack_walk_loads():
    load_each(every("stack_walk"))


@pytest.mark.needs("perf_event", "vmlinux_btf")
def test_offcpu_by_frame_pointers_loads():
    """On kernels without BPF_FETCH, too, which is refused in dead code as well."""
    spec = without_fetch(sched_compat.adapt(every("offcpu")))
    assert _fetches(every("offcpu"))
    assert not _fetches(spec)
    with purebpf.load(small(spec)) as loaded:
        assert loaded.programs.keys() == spec.programs.keys()


def _fetches(spec: ObjectSpec) -> int:
    """Atomic additions that give the value before."""
    return sum(
        function.code[at] in (0xC3, 0xDB) and function.code[at + 4] == 1
        for function in spec.functions.values()
        for at in range(0, len(function.code), 8)
    )


@pytest.mark.needs("perf_event", "vmlinux_btf", "atomic_fetch")
def test_offcpu_loads():
    load_each(sched_compat.adapt(every("offcpu")))


@pytest.mark.needs("vmlinux_btf")
def test_sleepers_loads():
    load_each(sched_compat.adapt(every("sleepers")))


@pytest.mark.needs("vmlinux_btf")
def test_spans_loads_in_every_mode():
    load_each(sched_compat.adapt(every("spans")), measure=MEASURES, grouping=GROUPINGS)


@pytest.mark.needs("vmlinux_btf")
def test_io_loads():
    load_each(objects.spec("io").only(*io_programs()), grouping=range(3))


@pytest.mark.needs("vmlinux_btf")
def test_kwork_loads():
    kinds, _ = supported_kinds(())
    load_each(objects.spec("kwork").only(*(name for kind in kinds for name in PROGRAMS[kind])))


@pytest.mark.needs("vmlinux_btf", "x86_64", "task_pt_regs", "atomic_fetch", "perf_event")
def test_mem_loads():
    load_each(every("mem"))


@pytest.mark.needs("vmlinux_btf", "task_pt_regs", "atomic_fetch", "perf_event")
def test_stack_library_loads():
    load_each(every("stack_library"))


@pytest.mark.needs("vmlinux_btf", "perf_event", "x86_64")
def test_stack_library_by_frame_pointers_loads():
    spec = without_lookups(without_fetch(every("stack_library").set(leaf_words=1)))
    with purebpf.load(small(spec)) as loaded:
        assert loaded.programs.keys() == spec.programs.keys()


LATENCY_ENDS = ("user_return", "kernel_return", "pair_end", "probe_end")
"""The programs that walk, and need neither a function nor many of them."""


@pytest.mark.needs("vmlinux_btf", "x86_64", "task_pt_regs", "atomic_fetch")
def test_latency_with_stacks_loads():
    spec = small(sched_compat.adapt(objects.spec("latency_stacks").only(*LATENCY_ENDS)))
    load_each(spec)


@pytest.mark.needs("vmlinux_btf", "x86_64")
def test_latency_with_stacks_by_frame_pointers_loads():
    spec = sched_compat.adapt(objects.spec("latency_stacks").only(*LATENCY_ENDS))
    spec = without_fetch(spec.set(has_cookies=False, leaf_words=1))
    with purebpf.load(small(spec)) as loaded:
        assert loaded.programs.keys() == set(LATENCY_ENDS)


@pytest.mark.needs("vmlinux_btf", "current_task_btf")
def test_trace_loads():
    load_each(sched_compat.adapt(every("trace")))


@pytest.mark.needs("vmlinux_btf", "new_iterators")
def test_tcp_loads():
    load_each(every("tcp"))


@pytest.mark.needs("vmlinux_btf")
@pytest.mark.parametrize("hook", HOOKS)
def test_summary_loads_with_every_hook(hook):
    spec = sched_compat.adapt(objects.spec("summary").only(*HOOKS[hook], ITERATOR))
    if hook != "tp_btf":
        spec = sched_compat.without_task_storage(spec)
    load_each(spec, mode=MODES)


@pytest.mark.parametrize("hook", [hook for hook in HOOKS if hook != "tp_btf"])
def test_summary_without_types(hook):
    spec = objects.spec("summary").only(*HOOKS[hook])
    load_each(sched_compat.without_task_storage(spec), no_types(), mode=MODES)
