"""A copy of a handle would be a second owner: each way to make one is refused and harmless."""

from __future__ import annotations

import copy
import dataclasses
import gc
import os
import pickle
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from multiprocessing.reduction import ForkingPickler
from typing import Any

import pytest

import purebpf
from purebpf import asm
from tests.support.nightly import by_day

pytestmark = pytest.mark.needs("bpf")


@dataclasses.dataclass
class Held:
    handle: object


WAYS: dict[str, Callable[[Any], object]] = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "deepcopy of a list": lambda handle: copy.deepcopy([handle]),
    **{
        f"pickle {protocol}": lambda handle, protocol=protocol: pickle.dumps(handle, protocol)
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1)
    },
    "asdict": lambda handle: dataclasses.asdict(Held(handle)),
    "astuple": lambda handle: dataclasses.astuple(Held(handle)),
    "queue": ForkingPickler.dumps,
}


def _spec() -> purebpf.ObjectSpec:
    """A program that does nothing at every system call, and a map of each kind with a reader."""
    kinds = asm.bpf_map_type
    code = asm.Program("count", "raw_tp/sys_enter")
    code.move(asm.R0, 0)
    code.exit()
    maps = [
        asm.MapSpec("calls", kinds.BPF_MAP_TYPE_ARRAY, 4, 8, 1),
        asm.MapSpec("ring", kinds.BPF_MAP_TYPE_RINGBUF, 0, 0, 4096),
        asm.MapSpec("events", kinds.BPF_MAP_TYPE_PERF_EVENT_ARRAY, 4, 4, 0),
    ]
    return asm.build("owners", [code], maps=maps)


@contextmanager
def _handles() -> Iterator[dict[str, Any]]:
    """One open handle of each public class, by name."""
    with ExitStack() as stack:
        obj = stack.enter_context(purebpf.load(_spec()))
        yield {
            "Object": obj,
            "Program": obj.programs["count"],
            "Map": obj.maps["calls"],
            "RingBuffer": stack.enter_context(obj.maps["ring"].reader(bytes)),
            "PerfBuffer": stack.enter_context(obj.maps["events"].reader(bytes)),
            "PerfEvent": stack.enter_context(purebpf.PerfEvent.sampling(frequency=99, cpu=0)),
            "Link": stack.enter_context(obj.programs["count"].attach()),
        }


@pytest.mark.parametrize("way", by_day(WAYS, ["copy", "deepcopy of a list", "pickle 5", "asdict"]))
def test_a_copy_is_a_type_error_and_the_original_works_on(way: str):
    with _handles() as handles:
        numbers = {name: os.fstat(h.fileno()) for name, h in handles.items() if name in _NUMBERED}
        for name, handle in handles.items():
            with pytest.raises(TypeError, match=f"cannot copy or pickle '{name}' object"):
                WAYS[way](handle)
        gc.collect()
        assert numbers == {name: os.fstat(handles[name].fileno()) for name in numbers}
        handles["Map"][0] = bytes(range(8))
        assert handles["Map"][0] == bytes(range(8))
        assert handles["Link"].info.program_id == handles["Program"].info.id


_NUMBERED = {"Program", "Map", "PerfEvent", "Link"}


def test_an_argument_of_a_spawned_process_names_the_way_to_open_another():
    with _handles() as handles:
        for name in ("Link", "Map", "Program"):
            with pytest.raises(TypeError, match=rf"{name}\.from_id\(\) or {name}\.open\(\)"):
                ForkingPickler.dumps((handles[name],))
        with (
            purebpf.Link.from_id(handles["Link"].info.id) as another,
            purebpf.Map.from_id(handles["Map"].info.id) as same,
        ):
            same[0] = bytes(8)
            assert another.info.program_id == handles["Program"].info.id
