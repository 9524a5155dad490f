"""The content of an object file as data: frozen, comparable, the same on every machine.

`purebpf.read_object` makes an `ObjectSpec`; `.set()`, `.only()` and `.resize()` give a changed
copy, `._replace()` one with any other fields; `purebpf.load` turns one into kernel objects.
Nothing here knows a kernel.

Offsets are in bytes: a program counter of `n` instructions is the offset `8 * n`; offsets of a
function's relocations and lines count from its first instruction. Type ids are ids in
`ObjectSpec.btf`, the BTF to upload.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from purebpf.abi.bpf import bpf_prog_type
from purebpf.abi.sections import DEFINITIONS, SecDef
from purebpf.errors import SchemaError
from purebpf.similar import unknown_name
from purebpf.tuples import NamedTuple

if TYPE_CHECKING:
    from purebpf.btf.types.parse import Btf
    from purebpf.btf.types.resize import ArrayAtEnd

_PROG_ARRAY = 3
_STRUCT_OPS = 26
_FIXED_SECTIONS = frozenset({".kconfig", ".ksyms"})


class RelocationKind(Enum):
    """The kinds of targets that instructions refer to."""

    MAP = "map"  # ld_imm64 of a map
    DATA = "data"  # ld_imm64 of an address inside a data section's map
    CALL = "call"  # call of a BPF function
    FUNCTION = "function"  # ld_imm64 of a BPF function's address (callbacks)
    EXTERN = "extern"  # a kernel symbol (.ksyms): ld_imm64 of a variable, or a call of a function
    JUMP_TABLE = "jump table"  # ld_imm64 of an address inside a table of the function's own


class Relocation(NamedTuple):
    """One reference of an instruction.

    `target` is a key of `ObjectSpec.maps` (MAP, DATA), of `ObjectSpec.functions` (CALL, FUNCTION),
    of `FunctionSpec.jump_tables`, or a symbol's name (EXTERN). `addend` is the byte offset inside
    the map's value (DATA) or the table, with entries of 8 bytes.
    """

    offset: int
    kind: RelocationKind
    target: str
    addend: int = 0


class CoreRelocation(NamedTuple):
    """A record of .BTF.ext: instruction `offset` depends on `access` within `type_id`.

    `access` is the raw accessor string ("0:1:2"); `kind` is enum bpf_core_relo_kind, 0 to 12.
    """

    offset: int
    type_id: int
    access: str
    kind: int


class LineInfo(NamedTuple):
    """A source line: `file_name` and `line` are string offsets in the object's BTF."""

    offset: int
    file_name: int
    line: int
    line_col: int


class FunctionSpec(NamedTuple):
    """A function as compiled: its own code and the targets of that code.

    Every call of another BPF function has a relocation, also where clang emitted none.
    `linkage` is "global", "static" or "weak"; `type_id` is its BTF FUNC, or 0. `jump_tables` says,
    by name, where the entries of each lead, in bytes from the function's first instruction.
    """

    name: str
    section: str
    section_offset: int
    code: bytes
    linkage: str
    type_id: int = 0
    relocations: tuple[Relocation, ...] = ()
    core_relocations: tuple[CoreRelocation, ...] = ()
    line_info: tuple[LineInfo, ...] = ()
    jump_tables: Mapping[str, tuple[int, ...]] = MappingProxyType({})

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the jump tables as a dict: the default is a view, which pickle refuses."""
        return type(self), (*self[:-1], dict(self.jump_tables))

    def __repr__(self) -> str:
        place = f"{self.section}+{self.section_offset:#x}"
        return f"<FunctionSpec {self.name}: {len(self.code) // 8} instructions at {place}>"


class ProgramSpec(NamedTuple):
    """An entry point: a function in a program section.

    `type` is enum bpf_prog_type, `attach_type` enum bpf_attach_type; both are 0 when the section
    name is not in the table (`sec_prefix` is then ""). `read_object` finds the section's line of
    the table once: `definition`. `attach_target` is the text behind the prefix:
    "sched/sched_switch" of "tracepoint/sched/sched_switch". An XDP program with an `ifindex` is
    bound to that interface: it may call kernel functions that read the device's facts about a
    frame, and runs nowhere else (Linux 6.3, commit 2b3486bc2d23).

    `signature` is of the instructions, PKCS#7 in DER, by a key that `keyring` has: the serial of a
    keyring, or a KEY_SPEC_* of keyrings(7), -3 for the session's (Linux 6.18, commit 349271568303;
    with CONFIG_SYSTEM_DATA_VERIFICATION). The instructions of a program that refers to maps differ
    from one load to the next: no signature fits them.
    """

    name: str
    function: str
    section: str
    sec_prefix: str
    type: int
    attach_type: int
    attach_target: str = ""
    flags: int = 0
    autoload: bool = True
    ifindex: int = 0
    signature: bytes = b""
    keyring: int = 0

    @property
    def definition(self) -> SecDef | None:
        """The line of libbpf's table that its section's name fits, None when none does."""
        return DEFINITIONS.get(self.sec_prefix)


class MapSpec(NamedTuple):
    """A map to create. Sizes in bytes; `type` is enum bpf_map_type.

    A data section is a map too (an ARRAY with one entry): `contents` is its image and `section` its
    name. `inner` is the template of a map-in-map. `pinning` is 0 (none) or 1 (by name); `load`
    refuses other numbers. `initial` lists static contents: (slot, name of a map or program).
    `extra` are the bytes that a definition of before libbpf 1.0 has behind its five fields, when
    they are not
    zero: `load` refuses it.

    A STRUCT_OPS map has a kernel struct as the object declares it: `contents` is its image and
    `initial` lists (place of the member, name of the program). Without `autocreate`, `load` leaves
    the map out, and a program that uses it is only refused when the verifier gets there.

    `exclusive_to` is the name of the one program that may use the map (Linux 6.18,
    commit baefdbdf6812). The kernel gets `program_hash`, the SHA-256 of that program's
    instructions, which `load` finds.

    `contents_offset` is where in an arena's memory its `contents` begin, in bytes: `load` puts
    them into the last pages if the kernel can refer to them there. `pin_directory` is where below
    the root of pins the map's is: `tc/globals` for some of iproute2's maps.
    """

    name: str
    type: int
    key_size: int
    value_size: int
    max_entries: int
    flags: int = 0
    key_type_id: int = 0
    value_type_id: int = 0
    pinning: int = 0
    numa_node: int | None = None
    map_extra: int = 0
    inner: MapSpec | None = None
    initial: tuple[tuple[int, str], ...] = ()
    section: str = ""
    contents: bytes = b""
    frozen: bool = False
    extra: bytes = b""
    autocreate: bool = True
    exclusive_to: str = ""
    program_hash: bytes = b""
    contents_offset: int = 0
    pin_directory: str = ""

    def __repr__(self) -> str:
        return f"<MapSpec {self}>"

    def __str__(self) -> str:
        sizes = f"key {self.key_size}, value {self.value_size}, {self.max_entries} entries"
        return f"{self.name}: {_map_type(self.type)}, {sizes}, flags {self.flags:#x}"


class VariableSpec(NamedTuple):
    """A global variable: `size` bytes at `offset` in the value of map `map`, of type `type_id`."""

    name: str
    map: str
    offset: int
    size: int
    type_id: int


class ExternSpec(NamedTuple):
    """A name that the object leaves to the kernel: a symbol or function of .ksyms, or a .kconfig.

    A value of .kconfig is also a variable, in the map `.kconfig`. `type_id` is the BTF type of its
    declaration, for a kernel function its FUNC; it differs from the type of its VAR in
    `ObjectSpec.btf`, which purebpf changed so that the kernel accepts it. A `weak` one may be
    missing.
    """

    name: str
    section: str
    type_id: int
    weak: bool


_MAP_FIELDS = frozenset(
    {"type", "key_size", "value_size", "max_entries", "flags", "map_extra", "numa_node", "pinning"}
)
_PROGRAM_FIELDS = frozenset(
    {"flags", "autoload", "attach_target", "ifindex", "keyring", "signature"}
)
"""What `ObjectSpec.configure` may change."""


class ObjectSpec(NamedTuple):
    """Everything an object file says; its methods give a changed copy.

    Attributes:
        name: the file's name up to the first dot, of characters the kernel allows in names.
        source: the path it was read from, or "bytes".
        byteorder: "little" or "big", of code and BTF alike.
        license: as in the file; "" when it has none, which is not GPL.
        programs: the entry points.
        functions: the code of programs and subprograms. The key is the function's name; a static
            function whose name is in use has the key `name@section+0xoffset`.
        maps: the declared maps, and one for each data section.
        variables: the global variables, without static and hidden ones.
        externs: symbols that the kernel has to supply.
        btf: the types; None when the object was compiled without -g.
    """

    name: str
    source: str
    byteorder: str
    license: str
    programs: Mapping[str, ProgramSpec]
    functions: Mapping[str, FunctionSpec]
    maps: Mapping[str, MapSpec]
    variables: Mapping[str, VariableSpec]
    externs: Mapping[str, ExternSpec] = MappingProxyType({})
    btf: Btf | None = None

    def set(self, /, **values: Any) -> Self:
        """Give global variables their first values: `spec.set(target_pid=1234)`.

        Values have the form that BTF gives the variable's type, or are its bytes. A mapping changes
        the fields of a struct that it names: `spec.set(cfg={"pid": 5})`.

        Raises:
            KeyError: there is no such variable; lists those with a similar name.
            SchemaError: a value that does not fit its type; a configuration value, which is the
                kernel's to give (`purebpf.load` has `kconfig=`).
        """
        from purebpf.btf.codec.codecs import variable_codec

        images: dict[str, bytearray] = {}
        for name, value in values.items():
            variable = _lookup(self.variables, name, f"{self.source}: unknown global variable")
            assert self.btf is not None  # variables come from BTF
            if name in self.externs:
                problem = "is a kernel configuration value; override it with load(..., kconfig=)"
                raise SchemaError(f"{self.source}: {name} {problem}")
            image = images.setdefault(variable.map, bytearray(self.maps[variable.map].contents))
            try:
                made = variable_codec(self.btf, variable.type_id, variable.name)
                if isinstance(value, Mapping):
                    from purebpf.btf.codec.structs import StructCodec

                    if isinstance(made, StructCodec):
                        value = made.merge(made.decode(image, variable.offset), value)
                encoded = made.encode(value)
            except SchemaError as error:
                raise SchemaError(f"{self.source}: variable {name}: {error}") from None
            if len(encoded) > variable.size:
                raise SchemaError(f"{self.source}: variable {name} has {variable.size} bytes")
            image[variable.offset : variable.offset + len(encoded)] = encoded
        changed = {
            name: self.maps[name]._replace(contents=bytes(image)) for name, image in images.items()
        }
        return self._replace(maps={**self.maps, **changed})

    def get(self, name: str) -> Any:
        """The first value of a global variable, as `set` takes it.

        Raises:
            KeyError: there is no such variable; lists those with a similar name.
        """
        from purebpf.btf.codec.codecs import variable_codec

        variable = _lookup(self.variables, name, f"{self.source}: unknown global variable")
        assert self.btf is not None  # variables come from BTF
        image = self.maps[variable.map].contents
        raw = image[variable.offset : variable.offset + variable.size]
        return variable_codec(self.btf, variable.type_id, variable.name).decode(
            raw.ljust(variable.size, b"\0")
        )

    def only(self, *programs: str) -> Self:
        """Keep these programs, and load them even if they are `SEC("?...")`.

        All maps stay: user space may want one that no program uses. A PROG_ARRAY's slots for
        programs that went are empty.

        Raises:
            KeyError: there is no such program; lists those with a similar name.
        """
        kept = {
            name: _lookup(self.programs, name, f"{self.source}: unknown program")._replace(
                autoload=True
            )
            for name in programs
        }
        gone = self.programs.keys() - kept.keys()
        maps = {name: _without_slots(spec, gone) for name, spec in self.maps.items()}
        return self._replace(programs=kept, maps=maps)

    def target(self, /, **targets: str) -> Self:
        """Say where programs attach, as the text behind their section's prefix does.

        `spec.target(on_switch="sched/sched_switch")`. Of fentry, LSM and the like the kernel takes
        it when it loads the program.

        Raises:
            KeyError: there is no such program; lists those with a similar name.
        """
        changed = {
            name: _lookup(self.programs, name, f"{self.source}: unknown program")._replace(
                attach_target=where
            )
            for name, where in targets.items()
        }
        return self._replace(programs={**self.programs, **changed})

    def configure(self, name: str, /, **fields: Any) -> Self:
        """Change the properties of a map or a program: `spec.configure("counts", type="lru_hash")`.

        Args:
            name: of a map, or of a program.
            fields: of a map `type` (a name or a number), `key_size`, `value_size`, `max_entries`,
                `flags`, `map_extra`, `numa_node`, `pinning`; of a program `flags`, `autoload`,
                `attach_target`, `ifindex` (of XDP), `signature` and `keyring`.

        Raises:
            KeyError: there is no such map or program.
            TypeError: it has no such field; lists those it has.
            SchemaError: a type of map that is not known; an `ifindex` of another program than XDP.
        """
        is_map = name in self.maps
        known = _MAP_FIELDS if is_map else _PROGRAM_FIELDS
        if unknown := sorted(fields.keys() - known):
            kind = "map" if is_map else "program"
            raise TypeError(
                f"{kind} {name} has no setting {unknown[0]!r}; it has {', '.join(sorted(known))}"
            )
        if is_map:
            if isinstance(fields.get("type"), str):
                fields["type"] = _map_type_number(fields["type"])
            changed = self
            if self.maps[name].section and "value_size" in fields:
                changed = self._resize_section(name, _elements_for(fields.pop("value_size")))
            spec = changed.maps[name]._replace(**fields)
            return changed._replace(maps={**changed.maps, name: spec})
        problem = f"{self.source}: unknown map or program"
        program = _lookup(self.programs, name, problem)._replace(**fields)
        if program.ifindex and program.type != bpf_prog_type.BPF_PROG_TYPE_XDP:
            reason = "only an XDP program is bound to an interface"
            raise SchemaError(f"{self.source}: program {name}: {reason}")
        return self._replace(programs={**self.programs, name: program})

    def resize(self, /, **max_entries: int) -> Self:
        """Change how many entries maps hold: `spec.resize(counts=100_000)`.

        For a data section, `spec.resize(**{".data.per_cpu": 16})` is the number of elements of the
        array that is its last variable, as libbpf's bpf_map__set_value_size() does in bytes.
        Elements that are added are 0.

        Raises:
            KeyError: there is no such map; lists those with a similar name.
            SchemaError: a number that is not a 32-bit count; a data section that does not end
                with an array.
        """
        changed = {}
        resized = self
        for name, count in max_entries.items():
            spec = _lookup(self.maps, name, f"{self.source}: unknown map")
            if spec.section:
                resized = resized._resize_section(name, _exactly(count))
                continue
            if not 0 <= count < 1 << 32:
                raise SchemaError(f"{self.source}: map {name} cannot have {count} entries")
            changed[name] = spec._replace(max_entries=count)
        return resized._replace(maps={**resized.maps, **changed})

    def _resize_section(self, name: str, choose: Callable[[ArrayAtEnd], int]) -> Self:
        """Change the array at the end of a data section; `choose` gives its number of elements."""
        from purebpf.btf.types.resize import find_array_at_end, with_array_at_end

        section = self.maps[name]
        if self.btf is None or not section.value_type_id or name in _FIXED_SECTIONS:
            reason = "is the kernel's to fill" if self.btf is not None else "has no BTF"
            raise SchemaError(f"{self.source}: map {name} cannot be resized: the section {reason}")
        try:
            last = find_array_at_end(self.btf, section.value_type_id)
            count = choose(last)
            btf, type_id = with_array_at_end(self.btf, section.value_type_id, count)
        except SchemaError as error:
            raise SchemaError(f"{self.source}: map {name} cannot be resized: {error}") from None
        size = last.offset + count * last.element_size
        contents = section.contents[:size].ljust(size, b"\0")
        section = section._replace(value_size=size, contents=contents)
        variables = dict(self.variables)
        if (variable := variables.get(last.name)) is not None and variable.map == name:
            size = count * last.element_size
            variables[last.name] = variable._replace(size=size, type_id=type_id)
        return self._replace(btf=btf, maps={**self.maps, name: section}, variables=variables)

    def leave_out(self, *maps: str) -> Self:
        """Do not create these maps: for kernels that may not support their type.

        Raises:
            KeyError: there is no such map; lists those with a similar name.
        """
        changed = {
            name: _lookup(self.maps, name, f"{self.source}: unknown map")._replace(autocreate=False)
            for name in maps
        }
        return self._replace(maps={**self.maps, **changed})

    def exclusive(self, /, **programs: str) -> Self:
        """Let one program alone use a map: `spec.exclusive(secrets="on_open")` (Linux 6.18).

        The kernel knows it by its instructions, and refuses every other one that uses the map.

        Raises:
            KeyError: there is no such map or program; lists those with a similar name.
        """
        changed = {
            name: _lookup(self.maps, name, f"{self.source}: unknown map")._replace(
                exclusive_to=_lookup(self.programs, program, f"{self.source}: unknown program").name
            )
            for name, program in programs.items()
        }
        return self._replace(maps={**self.maps, **changed})

    def struct_ops(self, name: str, /, **members: Any) -> Self:
        """Change members of a struct_ops map: `spec.struct_ops("cubic", flags=2, init="on_init")`.

        Function members take the name of a program or None, the others the form that BTF gives
        them. The map is then created even if it is in `SEC("?.struct_ops")`.

        Raises:
            KeyError: no such map, member or program; lists those with a similar name.
            SchemaError: a value that does not fit its type.
        """
        from purebpf.btf.codec.codecs import codec
        from purebpf.btf.types.kinds import Struct
        from purebpf.btf.types.pointers import is_function_pointer

        struct_map = _lookup(self.maps, name, f"{self.source}: unknown map")
        layout = self.btf.type(struct_map.value_type_id) if self.btf is not None else None
        if struct_map.type != _STRUCT_OPS or self.btf is None or not isinstance(layout, Struct):
            raise SchemaError(f"{self.source}: map {name} is not a struct_ops map")
        places = {member.name: index for index, member in enumerate(layout.members)}
        image, functions = bytearray(struct_map.contents), dict(struct_map.initial)
        for member, value in members.items():
            index = _lookup(
                places, member, f"{self.source}: struct_ops {name} does not have a member"
            )
            type_id, at = layout.members[index].type_id, layout.members[index].bit_offset // 8
            if not is_function_pointer(self.btf, type_id):
                encoded = codec(self.btf, type_id).encode(value)
                image[at : at + len(encoded)] = encoded
            elif value is None:
                functions.pop(index, None)
            else:
                functions[index] = _lookup(
                    self.programs, value, f"{self.source}: unknown program"
                ).name
        changed = struct_map._replace(
            contents=bytes(image), initial=tuple(sorted(functions.items())), autocreate=True
        )
        return self._replace(maps={**self.maps, name: changed})

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the externs as a dict: the default is a view, which pickle refuses."""
        return type(self), tuple(self._replace(externs=dict(self.externs)))

    def __repr__(self) -> str:
        return (
            f"<ObjectSpec {self.name}: {len(self.programs)} programs, {len(self.maps)} maps, "
            f"{len(self.variables)} variables>"
        )

    def __str__(self) -> str:
        lines = [f"{self.source} ({self.byteorder}-endian, license {self.license or 'none'})"]
        for program in self.programs.values():
            count = len(self.functions[program.function].code) // 8
            optional = "" if program.autoload else ", not loaded by default"
            lines.append(
                f"  program {program.name}: {program.section}, {count} instructions{optional}"
            )
        lines += (f"  map {spec}" for spec in self.maps.values())
        for variable in self.variables.values():
            place = f"{variable.map}+{variable.offset}, {variable.size} bytes"
            lines.append(f"  variable {variable.name}: {place}")
        lines += (f"  extern {extern.name}: {extern.section}" for extern in self.externs.values())
        return "\n".join(lines)


def reachable_functions(spec: ObjectSpec, roots: Iterable[str]) -> Iterator[str]:
    """Yield the keys of functions, and of all that they call or refer to, each once."""
    waiting, seen = [*roots][::-1], set[str]()
    while waiting:
        key = waiting.pop()
        if key in seen:
            continue
        seen.add(key)
        yield key
        relocations = spec.functions[key].relocations
        waiting += [
            each.target
            for each in relocations
            if each.kind in (RelocationKind.CALL, RelocationKind.FUNCTION)
        ]


_Spec = TypeVar("_Spec")


def _lookup(entries: Mapping[str, _Spec], name: str, problem: str) -> _Spec:
    """`found[name]`, or a KeyError that helps with spelling."""
    if name in entries:
        return entries[name]
    raise unknown_name(entries, name, problem)


def _exactly(count: int) -> Callable[[ArrayAtEnd], int]:
    return lambda _: count


def _elements_for(size: int) -> Callable[[ArrayAtEnd], int]:
    """Choose the number of elements that makes a data section `size` bytes long."""

    def choose(last: ArrayAtEnd) -> int:
        count, rest = divmod(size - last.offset, last.element_size)
        if rest:
            each = f"{last.name} begins at {last.offset} and has elements of {last.element_size}"
            raise SchemaError(f"{size} bytes are not whole elements: {each} bytes")
        return count

    return choose


def _map_type_number(name: str) -> int:
    """The number of a map type: `"lru_hash"`, or as the kernel spells it."""
    from purebpf.abi.bpf import bpf_map_type

    spelt = name.upper().removeprefix("BPF_MAP_TYPE_")
    try:
        return int(bpf_map_type[f"BPF_MAP_TYPE_{spelt}"])
    except KeyError:
        raise SchemaError(f"unknown map type {name!r}") from None


def _map_type(number: int) -> str:
    """The name of a map type, or its number when the kernel has invented more."""
    from purebpf.abi.bpf import bpf_map_type
    from purebpf.abi.names import member_name

    return member_name(bpf_map_type, number, prefix="BPF_MAP_TYPE_")


def _without_slots(spec: MapSpec, programs: Collection[str]) -> MapSpec:
    """`spec` without static contents that are among `programs`."""
    if spec.type not in (_PROG_ARRAY, _STRUCT_OPS):
        return spec
    return spec._replace(initial=tuple(slot for slot in spec.initial if slot[1] not in programs))
