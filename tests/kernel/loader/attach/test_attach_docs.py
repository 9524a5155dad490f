"""What docs/attach-network.md shows works, and its table tells the truth."""

from __future__ import annotations

import inspect
import re
import socket
from collections import ChainMap
from collections.abc import Iterator
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest

import purebpf
from purebpf.abi.bpf import bpf_map_type
from purebpf.loader.maps.map import Map
from purebpf.spec import MapSpec
from tests.support import probes
from tests.support.host import cgroups, network

pytestmark = pytest.mark.needs("bpf", "cgroup2", "net_namespace", "veth")

ROOT = Path(__file__).resolve().parents[4]
PAGE = (ROOT / "docs/attach-network.md").read_text()
EXAMPLES = re.findall(r"(?:<!-- needs: (\w+) -->\n)?```python\n(.*?)```", PAGE, re.DOTALL)
OBJECTS = {
    "net_cgroup": ("connect4", "first", "second", "third"),
    "net_device": ("frame", "packet", "entering", "of_devmap"),
    "net_route": ("sent",),
    "net_socket": ("filter", "message", "steer"),
    "load_replace": ("ask",),
}


@pytest.fixture
def names() -> Iterator[dict[str, object]]:
    """What the examples take for granted."""
    with ExitStack() as stack:
        stack.enter_context(network.namespace())
        stack.enter_context(network.pair("eth0", "far"))
        cgroup = stack.enter_context(cgroups.made())
        server = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        connection = stack.enter_context(socket.create_connection(server.getsockname()))
        stack.enter_context(server.accept()[0])
        programs: ChainMap[str, purebpf.Program] = ChainMap()
        maps: ChainMap[str, Map] = ChainMap()
        for file, wanted in OBJECTS.items():
            loaded = stack.enter_context(load(file, *wanted))
            programs = programs.new_child(dict(loaded.programs))
            maps = maps.new_child(dict(loaded.maps))
        yield {
            "purebpf": purebpf,
            "obj": SimpleNamespace(programs=programs, maps=maps.new_child(more(stack))),
            "connection": connection,
            "replacement": spec("load_replace").only("refuse"),
            "cgroup": cgroup,
            "programs": programs,
            "stack": stack,
        }


def more(stack: ExitStack) -> dict[str, Map]:
    trie = MapSpec("routes", bpf_map_type.BPF_MAP_TYPE_LPM_TRIE, 8, 4, 8, flags=1)
    found = {"routes": Numbers.create(trie)}
    stack.enter_context(found["routes"])
    if not probes.missing("user_ring_buffer"):
        orders = stack.enter_context(purebpf.load(spec("load_user_ring")))
        found["orders"] = orders.maps["orders"]
    return found


class Numbers(Map):
    """A map with numbers as values, as BTF would have it."""

    def __setitem__(self, key: object, value: int) -> None:
        super().__setitem__(key, value.to_bytes(4, "little"))


def spec(name: str) -> purebpf.ObjectSpec:
    return purebpf.read_object(ROOT / f"tests/data/{name}.bpf.o")


def load(name: str, *programs: str) -> purebpf.Object:
    chosen = spec(name).only(*programs)
    maps = {each: m for each, m in chosen.maps.items() if not each.startswith("created")}
    return purebpf.load(chosen._replace(maps=maps))


def runnable() -> Iterator[object]:
    for feature, example in EXAMPLES:
        marks = [pytest.mark.needs(feature)] if feature else []
        yield pytest.param(example, marks=marks, id=example.splitlines()[0][:40])


@pytest.mark.parametrize("example", list(runnable()))
def test_every_example_runs(example, names):
    if "netfilter" in example:
        netfilter = names["stack"].enter_context(load("net_device", "filter"))
        names["programs"]["netfilter"] = netfilter.programs["filter"]
    text = example.replace("/sys/fs/cgroup/web", str(names["cgroup"]))
    exec(compile(text, "docs/attach-network.md", "exec"), names)


MODULES = {
    "cgroup/...": "cgroup",
    "socket": "socket",
    "sk_msg": "sockmap",
    "sk_lookup": "netns",
    "xdp": "xdp",
    "tc": "tc",
    "netkit/primary": "netkit",
    "lwt_in": "lwt",
    "netfilter": "netfilter",
    "freplace/FUNCTION": "freplace",
    "lirc_mode2": "lirc",
}


def test_the_table_has_the_options_that_there_are():
    rows = re.findall(r"^\| `([^`]+)`[^|]*\| [^|]*\| (?:`([\w ]*)`)? *\|$", PAGE, re.MULTILINE)
    told = {section: set(options.split()) for section, options in rows if section in MODULES}
    for section, module in MODULES.items():
        attach = import_module(f"purebpf.loader.attach.{module}").attach
        parameters = inspect.signature(attach).parameters.values()
        options = {each.name for each in parameters if each.kind is each.KEYWORD_ONLY}
        assert told[section] == options, section
