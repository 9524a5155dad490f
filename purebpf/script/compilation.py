"""`compile_script`: from a script's text to an object to load and a table of actions."""

from __future__ import annotations

from functools import partial

from purebpf.abi.assembler import TooLongError
from purebpf.abi.bpf import bpf_map_type
from purebpf.asm.object import build
from purebpf.script.actions import Action
from purebpf.script.checker import Checker
from purebpf.script.host import Host
from purebpf.script.lowering.layout import (
    SCRATCH,
    SCRATCH_SLOTS,
    STACK_DEPTH,
    STACKS,
    TARGET_CGROUP,
    ZEROS,
    Context,
)
from purebpf.script.lowering.program import generate
from purebpf.script.map_info import MapInfo
from purebpf.script.parser import parse
from purebpf.script.rewriting import rewrite_constants
from purebpf.script.script_error import ScriptError
from purebpf.script.settings import Config, Settings, read_config
from purebpf.script.types import room
from purebpf.script.unit import Unit
from purebpf.script.world import World
from purebpf.spec import MapSpec, ObjectSpec
from purebpf.tuples import NamedTuple

__all__ = ["Compilation", "compile_script"]

_STACKS = 16384
_KINDS = {"hash": bpf_map_type.BPF_MAP_TYPE_HASH, "lruhash": bpf_map_type.BPF_MAP_TYPE_LRU_HASH,
          "percpuhash": bpf_map_type.BPF_MAP_TYPE_HASH,
          "percpulruhash": bpf_map_type.BPF_MAP_TYPE_LRU_HASH,
          "percpuarray": bpf_map_type.BPF_MAP_TYPE_HASH}  # fmt: skip
_PAGE = 4096
_MOST_RING = 1 << 31


class Compilation(NamedTuple):
    """A compiled script.

    Attributes:
        spec: the object to load; a program has the name of its unit. It calls `user_stack()` of
            `purebpf.stacks` if `walks_user_stacks`.
        units: the programs, in the order of the script.
        program_names: their names in the object.
    """

    text: str
    name: str
    spec: ObjectSpec
    units: list[Unit]
    program_names: list[str]
    maps: dict[str, MapInfo]
    actions: list[Action]
    config: Config
    settings: Settings
    world: World
    globals_size: int
    warnings: list[ScriptError]
    walks_user_stacks: bool


def compile_script(
    text: str, host: Host, settings: Settings | None = None, name: str = "stdin"
) -> Compilation:
    """Compile a script.

    Args:
        text: the script.
        host: the machine that it will run on.
        settings: options and parameters.
        name: of the file, for messages.

    Raises:
        ScriptError: the script is wrong, or uses a part of the language that is not supported.
    """
    settings = settings or Settings()
    script = parse(text)
    config = read_config(script, settings)
    rewrite_constants(script, settings, config)
    world = World(host)
    try:
        world.declare(script, text)
        checker = Checker(script, world, host, settings, config)
        checker.check()
        find_task = partial(world.named, "struct task_struct")
        context = Context(text, name, host, settings, config, checker.maps, find_task)
        if "strcontains" in text and world.kernel is not None:
            context.search_function = world.kernel.function("bpf_strstr") or 0
        _place_scalars(checker.maps, context)
        pieces = [generate(unit, context) for unit in checker.units]
    except RecursionError:
        raise ScriptError("the script is nested too deeply") from None
    programs = [program for program, _ in pieces]
    functions = [function for _, more in pieces for function in more]
    try:
        spec = build(
            "script", [*programs, *functions], _map_specs(context), config.texts["license"]
        )
    except TooLongError:
        raise ScriptError("a block is too long: it needs jumps over 32,767 instructions") from None
    names = [program.name for program in programs]
    return Compilation(text, name, spec, checker.units, names, checker.maps, context.actions,
                       config, settings, world, context.globals_size, checker.warnings,
                       context.walks_user_stacks)  # fmt: skip


def _place_scalars(maps: dict[str, MapInfo], context: Context) -> None:
    """Give maps without a key their places in the globals."""
    place = context.globals_size
    for info in maps.values():
        info.lost_place, info.set_place = place, place + 8
        place += 16
        if info.is_scalar is None:
            info.is_scalar = True
        if info.in_globals and info.value is not None:
            info.place = place
            place += room(info.value)
    context.globals_size = place


def _map_specs(context: Context) -> list[MapSpec]:
    array = bpf_map_type.BPF_MAP_TYPE_ARRAY
    specs = [
        MapSpec("globals", array, 4, context.globals_size, 1, flags=1 << 10),
        MapSpec(ZEROS, array, 4, context.zeros_size, 1),
        MapSpec("events", bpf_map_type.BPF_MAP_TYPE_RINGBUF, 0, 0, _ring_bytes(context.config)),
    ]
    if context.scratch_size:
        kind = bpf_map_type.BPF_MAP_TYPE_PERCPU_ARRAY
        specs.append(MapSpec(SCRATCH, kind, 4, context.scratch_size, SCRATCH_SLOTS))
    if context.uses_stacks:
        kind = bpf_map_type.BPF_MAP_TYPE_STACK_TRACE
        specs.append(MapSpec(STACKS, kind, 4, 8 * STACK_DEPTH, _STACKS))
    if context.settings.is_in_cgroup:
        specs.append(MapSpec(TARGET_CGROUP, bpf_map_type.BPF_MAP_TYPE_CGROUP_ARRAY, 4, 4, 1))
    specs += [_map_spec(info) for info in context.maps.values() if not info.in_globals]
    return specs


def _ring_bytes(config: Config) -> int:
    """Return the size of the ring: perf_rb_pages, rounded up to a power of two."""
    wanted = config.numbers["perf_rb_pages"] * _PAGE
    return min(_MOST_RING, max(_PAGE, 1 << (wanted - 1).bit_length()))


def _map_spec(info: MapInfo) -> MapSpec:
    if info.is_scalar:
        entries = info.buckets if info.has_buckets else 1
        kind = bpf_map_type.BPF_MAP_TYPE_PERCPU_ARRAY
        return MapSpec(info.bpf_name, kind, 4, info.value_size, entries)
    kind = _KINDS[info.kind]
    if info.is_aggregate:
        is_lru = info.kind in ("lruhash", "percpulruhash")
        kind = (bpf_map_type.BPF_MAP_TYPE_LRU_PERCPU_HASH if is_lru
                else bpf_map_type.BPF_MAP_TYPE_PERCPU_HASH)  # fmt: skip
    return MapSpec(info.bpf_name, kind, info.key_size, info.value_size, info.entries)
