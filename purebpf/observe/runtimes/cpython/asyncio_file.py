"""`find_task_layout`: where a process keeps asyncio's tasks."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator

from purebpf.errors import FormatError, NotSupportedError
from purebpf.observe.runtimes.cpython.python_process import PythonProcess
from purebpf.observe.symbols.mapped_files import open_mapped
from purebpf.runtimes.cpython.layout import NONE
from purebpf.runtimes.cpython.task_layout import TaskLayout
from purebpf.runtimes.cpython.task_layouts import TASK_LAYOUTS
from purebpf.symbols.elf_image import ElfImage
from purebpf.symbols.proc_maps import Mapping, parse_maps
from purebpf.syscall import proc
from purebpf.unwind.elf_frames import load_bias

__all__ = ["find_task_layout"]

_OFFSETS = struct.Struct("<13Q")
"""struct _Py_AsyncioModuleDebugOffsets of Modules/_asynciomodule.c (3.14)."""
_SELF_DESCRIBED = (3, 14)
_MOST = 1 << 20


def find_task_layout(pid: int, python: PythonProcess) -> TaskLayout | None:
    """Return the offsets of an interpreter's tasks; None: the process has not imported asyncio's C
    part.

    Raises:
        NotSupportedError: a version, or a build, with tasks that cannot be read.
    """
    layout = TASK_LAYOUTS.get(python.version)
    version = ".".join(map(str, python.version))
    if layout is None or python.is_free_threaded:
        build = " without a GIL" if python.is_free_threaded else ""
        raise NotSupportedError("--async", f"it cannot read tasks of CPython {version}{build}")
    if python.version < _SELF_DESCRIBED:
        return layout
    for mapping in _candidates(pid, python.path):
        raw = _described(pid, python, mapping)
        if raw is not None:
            return _complete(layout, _OFFSETS.unpack(raw), version)
    return None


def _candidates(pid: int, interpreter: str) -> Iterator[Mapping]:
    seen = set()
    for mapping in parse_maps(proc.maps(pid) or ""):
        path = mapping.file.path
        if path in seen:
            continue
        base = path.rpartition("/")[2]
        if path == interpreter or base.startswith("_asyncio"):
            seen.add(path)
            yield mapping


def _described(pid: int, python: PythonProcess, mapping: Mapping) -> bytes | None:
    """The bytes of the section `.AsyncioDebug` in the process; None: the file has none."""
    try:
        fd = open_mapped(mapping, (pid,))
    except OSError:
        return None
    try:
        size = os.fstat(fd).st_size
        image = ElfImage(lambda at, wanted: os.pread(fd, wanted, at), size, mapping.file.path)
        section = image.section(".AsyncioDebug")
        bias = load_bias(image.segments, mapping.start, mapping.offset)
    except FormatError:
        return None
    finally:
        os.close(fd)
    if section is None or bias is None:
        return None
    raw = python.read(section.address + bias, _OFFSETS.size)
    return raw if len(raw) == _OFFSETS.size and any(raw) else None


def _complete(layout: TaskLayout, said: tuple[int, ...], version: str) -> TaskLayout:
    if any(value > _MOST for value in said):
        raise NotSupportedError("--async", f"the tasks of this CPython {version} lie elsewhere")
    _, name, awaited_by, is_task, is_set, coroutine, node, *states = said
    _, interpreter, _, _, running_task, thread = states
    return layout._replace(
        task_name=name,
        task_coroutine=coroutine,
        task_waiter=NONE,
        task_node=node,
        awaited_by=awaited_by,
        awaited_by_is_set=is_set,
        is_task=is_task,
        running_task=running_task,
        interpreter_tasks=interpreter,
        thread_tasks=thread,
    )
