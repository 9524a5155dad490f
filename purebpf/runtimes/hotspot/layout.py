"""The layout of a JVM's frames, code cache and methods, as its own tables describe it.

Fields moved between HotSpot's classes, and changed from pointers to offsets (JDK 23) and from a
part of the code to memory of their own (JDK 23, 25). A field is used only if the tables have it: a
missing one is an error that names it, never a guess.
"""

from __future__ import annotations

from collections.abc import Mapping

from purebpf.runtimes.hotspot.vm_structs import (
    VmField,
    read_vm_constants,
    read_vm_structs,
    read_vm_types,
)
from purebpf.runtimes.memory import Memory, UnreadableError
from purebpf.tuples import NamedTuple

__all__ = ["ABSENT", "NEWEST", "OLDEST", "Addresses", "Jvm", "Layout", "LayoutError", "read_jvm"]

OLDEST, NEWEST = 11, 25
"""The versions of the JDK that are read."""
ABSENT = -1
"""The offset of a field that this version does not need."""
_LARGEST = 4096
"""Bytes: no field of these classes lies further."""
_LONGEST_RELEASE = 32
_FIRST_SHIFTED = 20
"""The version from which on UNSIGNED5 leaves out the byte 0 (JDK-8292758)."""

_FIELDS = {
    "array_length": ("GrowableArrayBase._len", "GenericGrowableArray._len"),
    "array_data": ("GrowableArray<int>._data",),
    "heap_memory": ("CodeHeap._memory",),
    "heap_segments": ("CodeHeap._segmap",),
    "heap_shift": ("CodeHeap._log2_segment_size",),
    "space_low": ("VirtualSpace._low_boundary",),
    "space_high": ("VirtualSpace._high_boundary",),
    "block_used": ("HeapBlock::Header._used",),
    "blob_name": ("CodeBlob._name",),
    "blob_frame_size": ("CodeBlob._frame_size",),
    "blob_complete": ("CodeBlob._frame_complete_offset",),
    "blob_begin": ("CodeBlob._code_begin", "CodeBlob._code_offset"),
    "blob_end": ("CodeBlob._code_end", "CodeBlob._data_offset"),
    "nmethod_method": ("nmethod._method", "CompiledMethod._method"),
    "nmethod_id": ("nmethod._compile_id",),
    "nmethod_entry": ("nmethod._verified_entry_point", "nmethod._verified_entry_offset"),
    "nmethod_orig_pc": ("nmethod._orig_pc_offset",),
    "nmethod_deopt": ("CompiledMethod._deopt_handler_begin", "nmethod._deopt_handler_offset"),
    "nmethod_deopt_mh": (
        "CompiledMethod._deopt_mh_handler_begin",
        "nmethod._deopt_mh_handler_offset",
    ),
    "nmethod_pcs": ("nmethod._scopes_pcs_offset",),
    "nmethod_scopes": ("CompiledMethod._scopes_data_begin", "nmethod._scopes_data_offset"),
    "method_constant": ("Method._constMethod",),
    "constant_pool": ("ConstMethod._constants",),
    "constant_code_size": ("ConstMethod._code_size",),
    "constant_flags": ("ConstMethod._flags", "ConstMethod._flags._flags"),
    "constant_name": ("ConstMethod._name_index",),
    "constant_signature": ("ConstMethod._signature_index",),
    "pool_class": ("ConstantPool._pool_holder",),
    "class_name": ("Klass._name",),
    "symbol_length": ("Symbol._length",),
    "symbol_body": ("Symbol._body",),
    "thread_saved_pc": ("JavaThread._saved_exception_pc",),
    "queue_buffer": ("StubQueue._stub_buffer",),
    "queue_limit": ("StubQueue._buffer_limit",),
}
"""Fields of all versions: the names that they have had."""

_SOME = {
    "nmethod_dependencies": ("nmethod._dependencies_offset",),
    "nmethod_metadata": ("nmethod._metadata_offset",),
    "nmethod_immutable": ("nmethod._immutable_data",),
    "nmethod_immutable_size": ("nmethod._immutable_data_size",),
    "blob_mutable": ("CodeBlob._mutable_data",),
    "blob_mutable_size": ("CodeBlob._mutable_data_size",),
    "blob_relocation_size": ("CodeBlob._relocation_size",),
    "pool_file": ("ConstantPool._source_file_name_index",),
    "class_file": ("InstanceKlass._source_file_name_index",),
}
"""Fields of some versions; `_contradiction` tells which belong together."""

_SIZES = {
    "block_size": "HeapBlock",
    "constant_size": "ConstMethod",
    "pool_size": "ConstantPool",
}
_ADDRESSES = {
    "heaps": "CodeCache._heaps",
    "interpreter": "AbstractInterpreter._code",
    "call_stub_return": "StubRoutines._call_stub_return_address",
    "counters": "PerfMemory._start",
    "counters_size": "PerfMemory._capacity",
}
_RELEASE = "Abstract_VM_Version._s_vm_release"
_LINES = ("ConstMethod::_has_linenumber_table", "ConstMethodFlags::_misc_has_linenumber_table")
_SLOTS = {"frame::interpreter_frame_sender_sp_offset": -1}
"""Constants that the walk relies on: words of an interpreter's frame from its frame pointer."""

_CLASSES = frozenset(
    name.rpartition(".")[0]
    for names in (*_FIELDS.values(), *_SOME.values(), _ADDRESSES.values(), (_RELEASE,))
    for name in names
) | {"ConstMethod"}


class LayoutError(Exception):
    """A JVM whose frames are not read; the message says why, in words."""


class Layout(NamedTuple):
    """Offsets in bytes, by class; `ABSENT` where a version has no such field.

    Attributes:
        version: of the JDK.
        has_offsets: whether a blob has 32-bit offsets from its own start in place of addresses.
        line_flag: the bit of `constant_flags` of a method that has a table of lines.
        least_byte: the number by which each byte of UNSIGNED5 is too large.
    """

    version: int
    has_offsets: bool
    line_flag: int
    least_byte: int
    array_length: int
    array_data: int
    heap_memory: int
    heap_segments: int
    heap_shift: int
    space_low: int
    space_high: int
    block_used: int
    block_size: int
    blob_name: int
    blob_frame_size: int
    blob_complete: int
    blob_begin: int
    blob_end: int
    blob_mutable: int
    blob_mutable_size: int
    blob_relocation_size: int
    nmethod_method: int
    nmethod_id: int
    nmethod_entry: int
    nmethod_orig_pc: int
    nmethod_deopt: int
    nmethod_deopt_mh: int
    nmethod_pcs: int
    nmethod_scopes: int
    nmethod_dependencies: int
    nmethod_metadata: int
    nmethod_immutable: int
    nmethod_immutable_size: int
    method_constant: int
    constant_size: int
    constant_pool: int
    constant_code_size: int
    constant_flags: int
    constant_name: int
    constant_signature: int
    pool_size: int
    pool_class: int
    pool_file: int
    class_name: int
    class_file: int
    symbol_length: int
    symbol_body: int
    thread_saved_pc: int
    queue_buffer: int
    queue_limit: int


class Addresses(NamedTuple):
    """Addresses of the pointers to the code cache, the interpreter's code, the call stub and the
    counters for jstat, and of the size of these.
    """

    heaps: int
    interpreter: int
    call_stub_return: int
    counters: int
    counters_size: int


class Jvm(NamedTuple):
    """A JVM as it describes itself.

    Attributes:
        release: its version in full, "17.0.15+6-Debian-1deb12u1".
        layout: where things are.
        addresses: static ones.
    """

    release: str
    layout: Layout
    addresses: Addresses


def read_jvm(memory: Memory, symbols: Mapping[str, int]) -> Jvm:
    """Read the tables of a JVM.

    Args:
        memory: the process's.
        symbols: addresses of `vm_structs.ALL_EXPORTS` in it.

    Raises:
        LayoutError: it is another version than 11 to 25; a field is missing, or has an offset that
            no class has; fields contradict each other; or a table cannot be read.
    """
    try:
        fields = read_vm_structs(memory, symbols, lambda kind, _: kind in _CLASSES)
        release = _release(memory, fields)
        sizes = read_vm_types(memory, symbols)
        constants = read_vm_constants(memory, symbols)
    except (UnreadableError, KeyError):
        raise LayoutError("HotSpot: the tables of its fields cannot be read") from None
    version = _version(release)
    reader = _LayoutReader(release, fields, sizes, constants)
    layout = reader.layout(version)
    return Jvm(release, layout, reader.addresses())


def _release(memory: Memory, fields: Mapping[tuple[str, str], VmField]) -> str:
    kind, _, name = _RELEASE.rpartition(".")
    raw = memory.bytes(memory.number(fields[kind, name].address), _LONGEST_RELEASE)
    return raw.partition(b"\0")[0].decode("ascii", "replace")


def _version(release: str) -> int:
    digits = release[: len(release) - len(release.lstrip("0123456789"))]
    version = int(digits) if digits else 0
    if not OLDEST <= version <= NEWEST:
        raise LayoutError(f"HotSpot {release}: purebpf reads JDK {OLDEST} to {NEWEST}")
    return version


class _LayoutReader:
    """Picks the fields of a layout from the tables of a JVM."""

    def __init__(
        self,
        release: str,
        fields: Mapping[tuple[str, str], VmField],
        sizes: Mapping[str, int],
        constants: Mapping[str, int],
    ) -> None:
        self._release = release
        self._fields = fields
        self._sizes = sizes
        self._constants = constants

    def layout(self, version: int) -> Layout:
        """All offsets and sizes."""
        offsets = {field: self._needed(names) for field, names in _FIELDS.items()}
        offsets |= {field: self._offset(names) for field, names in _SOME.items()}
        for field, kind in _SIZES.items():
            offsets[field] = self._checked(f"the size of {kind}", self._sizes.get(kind))
        flag = next((self._constants[name] for name in _LINES if name in self._constants), None)
        for name, value in _SLOTS.items():
            if self._constants.get(name) != value:
                raise self._error(f"{name} is {self._constants.get(name)}, not {value}")
        layout = Layout(
            version=version,
            has_offsets=("CodeBlob", "_code_offset") in self._fields,
            line_flag=self._checked(_LINES[-1], flag),
            least_byte=int(version >= _FIRST_SHIFTED),
            **offsets,
        )
        problem = _contradiction(layout)
        if problem:
            raise self._error(problem)
        return layout

    def addresses(self) -> Addresses:
        """The static fields."""
        found = {}
        for field, name in _ADDRESSES.items():
            kind, _, own = name.rpartition(".")
            static = self._fields.get((kind, own))
            if static is None or not static.address:
                raise self._error(f"no static field {name}")
            found[field] = static.address
        return Addresses(**found)

    def _needed(self, names: tuple[str, ...]) -> int:
        offset = self._offset(names)
        if offset == ABSENT:
            raise self._error(f"no field {' or '.join(names)}")
        return offset

    def _offset(self, names: tuple[str, ...]) -> int:
        for name in names:
            kind, _, own = name.partition(".")
            field = self._fields.get((kind, own))
            if field is not None:
                return self._checked(name, field.offset)
        return ABSENT

    def _checked(self, name: str, value: int | None) -> int:
        if value is None:
            raise self._error(f"no {name}")
        if not 0 <= value <= _LARGEST:
            raise self._error(f"{name} is {value}")
        return value

    def _error(self, problem: str) -> LayoutError:
        return LayoutError(f"HotSpot {self._release}: {problem}")


def _contradiction(layout: Layout) -> str:
    """Return the reason why the fields of some versions do not make a whole; "" if they do."""
    if layout.has_offsets:
        if ABSENT in (layout.nmethod_immutable, layout.nmethod_immutable_size):
            return "no field nmethod._immutable_data or its size"
        mutable = (layout.blob_mutable, layout.blob_mutable_size, layout.blob_relocation_size)
        if layout.nmethod_metadata == ABSENT and ABSENT in mutable:
            return "no field nmethod._metadata_offset or CodeBlob._mutable_data"
    elif ABSENT in (layout.nmethod_dependencies, layout.nmethod_metadata):
        return "no field nmethod._dependencies_offset or nmethod._metadata_offset"
    if ABSENT in (layout.pool_file, layout.class_file) and layout.pool_file == layout.class_file:
        return "no field ConstantPool._source_file_name_index"
    return ""
