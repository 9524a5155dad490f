"""The walk of user stacks: chosen, loaded, and described (bpf_src/include/user_stacks.h)."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, MutableMapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from purebpf.errors import KernelError, NotSupportedError
from purebpf.loader.host import fd_limits
from purebpf.observe.runtimes.hotspot.java_processes import JavaProcesses
from purebpf.observe.unwind.copy_rings import LARGEST_COPY
from purebpf.observe.unwind.user_stacks import UserStacks
from purebpf.tuples import NamedTuple

if TYPE_CHECKING:
    from purebpf.loader.maps.map import Map
    from purebpf.observe.runtimes.cpython.python_tables import PythonTables
    from purebpf.observe.unwind.programs import EarlierLookup
    from purebpf.spec import ObjectSpec

__all__ = [
    "CHOICES",
    "PYTHON_PROCESSES",
    "CallGraph",
    "describe_walking",
    "load_walking",
    "mode_of",
    "not_copied",
    "open_walking",
    "read_python",
    "set_walking",
    "without_fetch",
]

PYTHON_PROCESSES = 4096
"""As many as the map `pythons` has room for."""

CHOICES = ("auto", "tables", "deep", "copy", "fp")
_NUMBERS = {"fp": 0, "tables": 1, "deep": 1, "copy": 2}
"""enum call_graph of user_stacks.h."""
_LEAF_WORDS_OF_USER_MODE, _LEAF_WORDS_OF_ALL = 1, 2
"""enum leaf_words of user_stacks.h."""
_FEW_CPUS = 8
_COPY_BYTES, _LONG_COPY_BYTES = 16384, 32768
"""Of a stack. A compiler's reach beyond the first; few CPUs have memory for the second."""
_MORE_FILES = 128
"""Files of code and memories of processes that are open at once, at least, and what else is."""
_NOT_COPIED = ("refused", "output_full", "output_none", "output_failed")
"""Counters of user_stacks.h: stacks that needed a copy and got none."""
_TABLES = ("rules", "exes", "procs", "shards", "call_sites")
_PYTHON = ("pythons", "python_codes", "python_functions", "python_names")
_JAVA = ("javas", "v8s", "java_codes", "java_names")
"""Maps that the program refers to and does not use by frame pointers."""
_OF_STACKS_BY_TABLES = (
    *_TABLES,
    *_PYTHON,
    *("python_stats", "python_walks", "python_records", "python_threads"),
    *("python_tasks", "python_task_walks"),
    *(*_JAVA, "java_walks", "java_stats"),
    *("walks", "known_rules", "budgets", "copies", "unwind_stats"),
)
"""Maps that a program of frame pointers alone does not refer to."""
_NUMBERING = "new_number"
"""The function of python_code.h that numbers code objects."""
_ATOMIC = (0xC3, 0xDB)  # BPF_STX | BPF_ATOMIC, of 4 and of 8 bytes
_FETCH = 1  # of the operation, which is in the immediate


class WalkingObject(Protocol):
    """The parts of a loaded object that walks stacks: `Object`, or what a library adds to one."""

    @property
    def maps(self) -> Mapping[str, Map]:
        """The maps of user_stacks.h by name."""

    @property
    def globals(self) -> MutableMapping[str, Any]:
        """Its variables by name."""

    def close(self) -> None:
        """Unload it."""


Walking = TypeVar("Walking", bound=WalkingObject)


class CallGraph(NamedTuple):
    """The ways to walk user stacks.

    Attributes:
        mode: "tables", "deep", "copy" or "fp"; "" if there are no user stacks.
        why: the reason if it is not the requested one, or "".
    """

    mode: str
    why: str = ""


def load_walking(
    spec: ObjectSpec,
    asked: str,
    load: Callable[[ObjectSpec], Walking],
    owned: ExitStack,
    earlier: EarlierLookup | None = None,
    *,
    pages: int = 256,
    fp_program: str = "",
    always: tuple[str, ...] = (),
    lines: bool = False,
) -> tuple[Walking, UserStacks | None, CallGraph]:
    """Load an object that includes user_stacks.h.

    Args:
        spec: with everything else set.
        asked: one of `CHOICES`; "" for no user stacks. "auto" is tables where the CPU and the
            kernel allow, else frame pointers.
        load: puts a spec into the kernel.
        owned: closes the resources opened here.
        earlier: returns the mappings of a process at a time, see `UserStacks`.
        pages: of the rings of copies of 16 KiB, see `UserStacks`; more for larger ones.
        fp_program: of the spec's programs, the one to load instead of all others where stacks are
            walked by frame pointers. Its object lacks the maps of the other ways.
        always: programs to load in either way.
        lines: whether the lines of Java frames are wanted, too.

    Returns: the object; the finisher of its stacks, None with frame pointers; and the choice.

    Raises:
        NotSupportedError: this CPU or kernel does not support the request.
        KernelError: the kernel refused the object.
    """
    why = ""
    if asked not in ("", "fp"):
        mode = "tables" if asked == "auto" else asked
        others = spec.only(*(spec.programs.keys() - {fp_program}))
        try:
            _check_open_files(others, mode)
            sizes = {"pages": pages}
            return *_load(others, mode, load, owned, earlier, **sizes, lines=lines), CallGraph(mode)
        except (KernelError, NotSupportedError) as error:
            if asked != "auto":
                raise
            why = str(error).partition("\n")[0]
    mode = asked and "fp"
    if fp_program:
        spec = spec.only(fp_program, *always).leave_out(*_OF_STACKS_BY_TABLES)
    else:
        spec = without_fetch(_shrunk(spec, *_TABLES, *_PYTHON, *_JAVA))
    return _load_frame_pointers(spec, mode, load, owned), None, CallGraph(mode, why)


def _check_open_files(spec: ObjectSpec, mode: str) -> None:
    """Find out beforehand that a run would end for lack of descriptors.

    Raises:
        NotSupportedError: there are too few descriptors for the object and its tables.
    """
    rings = 2 * (os.cpu_count() or 1)
    needed = len(spec.maps) + 2 * len(spec.programs) + rings + _MORE_FILES
    if fd_limits.count_left() < needed:
        raise NotSupportedError(f"--call-graph {mode}", fd_limits.explain_too_few(needed))


def _load(
    spec: ObjectSpec,
    mode: str,
    load: Callable[[ObjectSpec], Walking],
    owned: ExitStack,
    earlier: EarlierLookup | None,
    *,
    pages: int,
    lines: bool,
) -> tuple[Walking, UserStacks]:
    spec = set_walking(spec, mode)
    with ExitStack() as undo:
        loaded = load(spec)
        undo.callback(loaded.close)
        stacks = open_walking(loaded, mode, undo, earlier, pages=pages, lines=lines)
        owned.push(undo.pop_all())
    return loaded, stacks


def set_walking(spec: ObjectSpec, mode: str) -> ObjectSpec:
    """Set the configuration of an object that includes user_stacks.h, for a mode but "auto".

    Raises:
        NotSupportedError: another machine than x86-64 and arm64.
    """
    if mode == "fp":
        spec = without_fetch(_shrunk(spec, *_TABLES, *_PYTHON, *_JAVA))
        return spec.set(call_graph=_NUMBERS[mode], **_of_machine("leaf words"))
    spec = spec.set(call_graph=_NUMBERS[mode], **_of_machine(f"--call-graph {mode}"))
    if mode == "copy":
        return _shrunk(spec.set(copies_per_second=0), *_TABLES, *_JAVA)
    is_deep = mode == "deep"
    return spec.set(java=_walks_java(mode), copies_deep=is_deep, python_deep=is_deep)


def _walks_java(mode: str) -> bool:
    """Return True if BPF leaves the frames of Java methods."""
    return mode in ("tables", "deep") and os.uname().machine == "x86_64"


def mode_of(loaded: WalkingObject) -> str:
    """Return the mode that `set_walking` set in a loaded object."""
    number = loaded.globals["call_graph"]
    if number == _NUMBERS["tables"]:
        return "deep" if loaded.globals["copies_deep"] else "tables"
    return next(mode for mode, each in _NUMBERS.items() if each == number)


def open_walking(
    loaded: WalkingObject,
    mode: str,
    owned: ExitStack,
    earlier: EarlierLookup | None,
    *,
    pages: int,
    lines: bool,
) -> UserStacks:
    """Finish the stacks of a loaded object, by the mode that it has: not "fp".

    Args:
        loaded: the object.
        mode: as `set_walking` had it.
        owned: closes the resources opened here.
        earlier: see `UserStacks`.
        pages: of the rings of copies of 16 KiB.
        lines: whether the lines of Java frames are wanted.

    Raises:
        KernelError, NotSupportedError: as `UserStacks`.
    """
    stack_bytes = _copy_bytes(mode)
    stacks = owned.enter_context(
        UserStacks(
            loaded.maps,
            loaded.globals,
            tables=mode != "copy",
            earlier=earlier,
            stack_bytes=stack_bytes,
            pages=pages * _ring_factor(stack_bytes),
        )
    )
    if _walks_java(mode):
        stacks.java = owned.enter_context(JavaProcesses(loaded.maps, lines=lines))
    return stacks


def _copy_bytes(mode: str) -> int:
    if mode == "deep":
        return LARGEST_COPY
    return _LONG_COPY_BYTES if (os.cpu_count() or 1) <= _FEW_CPUS else _COPY_BYTES


def _ring_factor(stack_bytes: int) -> int:
    """Return the factor on the pages that `_COPY_BYTES` need."""
    return -(-stack_bytes // _COPY_BYTES)


def _of_machine(purpose: str) -> dict[str, int]:
    """Set the remaining configuration of an object.

    Raises:
        NotSupportedError: another machine than x86-64 and arm64.
    """
    if os.uname().machine == "x86_64":
        return {}
    from purebpf.observe.unwind.native_machine import native_code_bits  # not needed at each start

    return {"arm64_code_bits": native_code_bits(purpose)}


def _load_frame_pointers(
    spec: ObjectSpec, mode: str, load: Callable[[ObjectSpec], Walking], owned: ExitStack
) -> Walking:
    """With the words that tell the caller of a leaf without a frame, as far as the kernel can."""
    try:
        spec = spec.set(**_of_machine("leaf words"))
    except NotSupportedError:
        return _owned(load(spec), owned)
    if not mode:
        return _owned(load(spec), owned)
    for words in (_LEAF_WORDS_OF_ALL, _LEAF_WORDS_OF_USER_MODE):  # the first since Linux 5.15
        try:
            return _owned(load(spec.set(leaf_words=words)), owned)
        except (KernelError, NotSupportedError):
            continue
    return _owned(load(spec), owned)


def _owned(loaded: Walking, owned: ExitStack) -> Walking:
    owned.callback(loaded.close)
    return loaded


def read_python(
    loaded: WalkingObject,
    walking: UserStacks,
    owned: ExitStack,
    *,
    lines: bool,
    native: bool,
    tasks: bool = False,
) -> PythonTables:
    """Read Python frames in the stacks of an object that `load_walking` loaded.

    Args:
        loaded: the object, with `python` among its settings.
        walking: the finisher of its stacks.
        owned: closes the resources opened here.
        lines: see `PythonTables`.
        native: see there, too.
        tasks: likewise.
    """
    from purebpf.observe.runtimes.cpython.python_tables import (
        PythonTables,  # only where it is asked for
    )

    python = PythonTables(*(loaded.maps, loaded.globals), lines=lines, native=native, tasks=tasks)
    owned.callback(python.close)
    walking.on_missed = python.interpreters.publish
    return python


def without_fetch(spec: ObjectSpec) -> ObjectSpec:
    """A spec that kernels without BPF_FETCH take (Linux 5.12, commit 5ca419f2864a).

    They refuse the instruction also where it is dead code, as the numbering of Python's code
    objects is without Python frames: it adds without an answer here.
    """
    numbering = spec.functions.get(_NUMBERING)
    if numbering is None:
        return spec
    code = bytearray(numbering.code)
    for at in range(0, len(code), 8):
        if code[at] in _ATOMIC:
            code[at + 4] &= ~_FETCH
    changed = numbering._replace(code=bytes(code))
    return spec._replace(functions={**spec.functions, _NUMBERING: changed})


def _shrunk(spec: ObjectSpec, *maps: str) -> ObjectSpec:
    """The least of these maps: they must exist, as the program refers to them."""
    return spec.resize(**dict.fromkeys(maps, 1))


def describe_walking(
    chosen: CallGraph, stacks: UserStacks | None, stats: Mapping[str, int]
) -> dict[str, object]:
    """Return facts about a run: how user stacks were walked, the reason, and the number of copies.

    Args:
        chosen: by `load_walking`.
        stacks: the results.
        stats: `struct unwind_stats` by field, summed over the CPUs.
    """
    about: dict[str, object] = {"call_graph": chosen.mode} if chosen.mode else {}
    if chosen.why:
        about["call_graph_why"] = chosen.why
    if stacks is not None:
        about["finished"] = stacks.finished
        about["copies"] = stacks.copies
        about["copies_lost"] = not_copied(stats)
    return about


def not_copied(stats: Mapping[str, int]) -> int:
    """Return how many stacks needed a copy and got none, by `struct unwind_stats`."""
    return sum(stats[name] for name in _NOT_COPIED)
