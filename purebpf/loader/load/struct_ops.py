"""struct_ops maps: an object's tables of functions, as this kernel has them.

The kernel's struct may have more members than the object's, or have them elsewhere, so each member
is moved by name. The kernel stores `bpf_struct_ops_NAME`, which contains the struct. A program is
loaded for one member of one struct, and goes into the table as its descriptor.
Source: libbpf, bpf_map__init_kern_struct_ops; kernel/bpf/bpf_struct_ops.c.
"""

from __future__ import annotations

import errno
import struct
from collections.abc import Mapping
from typing import TYPE_CHECKING

from purebpf.abi.bpf import BPF_F_LINK, BPF_F_VTYPE_BTF_OBJ_FD, bpf_map_type, bpf_prog_type
from purebpf.btf.types.kinds import Kind, Member, Struct
from purebpf.btf.types.parse import Btf, essential_name
from purebpf.btf.types.pointers import is_function_pointer
from purebpf.btf.types.spelling import spell
from purebpf.errors import KernelError, NotSupportedError
from purebpf.loader.maps.map import Map
from purebpf.loader.maps.map_create import kernel_name
from purebpf.loader.programs.attach_target import AttachTarget
from purebpf.loader.types.kernel_btf import kernel_btf
from purebpf.spec import MapSpec, ObjectSpec, ProgramSpec
from purebpf.syscall import bpf
from purebpf.tuples import NamedTuple

if TYPE_CHECKING:
    from purebpf.loader.load.kernel_types import KernelTypes
    from purebpf.loader.programs.program import Program

__all__ = ["StructOps", "StructOpsMap", "resolve"]

_STRUCT_OPS = bpf_map_type.BPF_MAP_TYPE_STRUCT_OPS
_PREFIX = "bpf_struct_ops_"
_DESCRIPTOR = struct.Struct("=Q")


class StructOpsMap(NamedTuple):
    """One map as this kernel wants it.

    Attributes:
        value_type_id: of `bpf_struct_ops_NAME`.
        btf_fd: a descriptor of the module's BTF that has it; 0 for vmlinux.
        image: its bytes, with zeros where functions go.
        functions: by program, where in the image its descriptor goes.
    """

    value_type_id: int
    btf_fd: int
    image: bytes
    functions: tuple[tuple[str, int], ...]

    def create(self, spec: MapSpec, btf_fd: int) -> Map:
        """Create the map, still empty; `btf_fd` is the object's BTF, which the kernel insists on.

        Raises:
            KernelError: the kernel refused.
        """
        fields = {
            "btf_vmlinux_value_type_id": self.value_type_id,
            "btf_fd": btf_fd,
            "map_flags": spec.flags,
        }
        if self.btf_fd:
            fields |= {
                "value_type_btf_obj_fd": self.btf_fd,
                "map_flags": spec.flags | BPF_F_VTYPE_BTF_OBJ_FD,
            }
        try:
            map_fd = bpf.map_create(
                spec.type, 4, len(self.image), 1, map_name=kernel_name(spec), **fields
            )
        except KernelError as error:
            raise _not_created(error, spec) from None
        return Map(map_fd, name=spec.name)

    def value(self, programs: Mapping[str, Program]) -> bytes:
        """Return the bytes to write into the map."""
        image = bytearray(self.image)
        for name, offset in self.functions:
            _DESCRIPTOR.pack_into(image, offset, programs[name].fileno())
        return bytes(image)


class StructOps(NamedTuple):
    """An object's struct_ops maps, resolved on this kernel.

    Attributes:
        spec: the object, with its struct_ops programs set to load for their members or not at all.
        maps: its struct_ops maps that are to be created, by name.
        targets: by program, the struct it is for.
    """

    spec: ObjectSpec
    maps: Mapping[str, StructOpsMap]
    targets: Mapping[str, AttachTarget]


def resolve(spec: ObjectSpec, types: KernelTypes) -> StructOps:
    """Find the structs and members in this kernel.

    A program that only maps refer to which are not created, or for members that this kernel does
    not have, is not loaded.

    Raises:
        NotSupportedError: this kernel has no such struct, or a member with a value that it does
            not have, or has of another kind; a program in two places that differ, or that is for
            something else; a map of this type that is not a struct.
    """
    maps: dict[str, StructOpsMap] = {}
    used: dict[str, tuple[AttachTarget, int]] = {}
    mentioned: set[str] = set()
    for name, map_spec in spec.maps.items():
        if map_spec.type != _STRUCT_OPS:
            continue
        mentioned.update(program for _, program in map_spec.initial)
        if map_spec.autocreate:
            table = _Table(spec, map_spec, types)
            maps[name] = table.move_members()
            for program, member in table.members:
                place = (table.target, member)
                if used.setdefault(program, place) != place:
                    reason = "struct_ops maps have it as different members"
                elif spec.programs[program].type != bpf_prog_type.BPF_PROG_TYPE_STRUCT_OPS:
                    reason = f'struct_ops {name!r} has it as a member: put it in SEC("struct_ops")'
                else:
                    continue
                raise NotSupportedError(f"{spec.source}: program {program!r}", reason)
    changed: dict[str, ProgramSpec] = {}
    for program in mentioned | used.keys():
        member = used[program][1] if program in used else 0
        changed[program] = spec.programs[program]._replace(
            autoload=program in used, attach_type=member
        )
    planned = spec._replace(programs={**spec.programs, **changed})
    return StructOps(planned, maps, {program: place[0] for program, place in used.items()})


class _Table:
    """One map, moved member by member.

    Attributes:
        target: the kernel's struct.
        members: each program, and the index of its member in that.
    """

    def __init__(self, spec: ObjectSpec, map_spec: MapSpec, types: KernelTypes) -> None:
        assert spec.btf is not None  # struct_ops maps come from BTF
        self._source = spec.source
        self._map = map_spec
        self._btf = spec.btf
        declared = spec.btf.type(map_spec.value_type_id)
        if not isinstance(declared, Struct):
            reason = (
                'its value is not a struct: struct_ops maps are variables in SEC(".struct_ops")'
            )
            raise NotSupportedError(f"{spec.source}: map {map_spec.name!r}", reason)
        self._struct = declared
        self._name = essential_name(self._struct.name)
        module, self._kernel, self._value_id = self._find(types)
        fd = types.modules.descriptor(module) if module else 0
        self._base, type_id = self._inside()
        self._kernel_struct = _struct(self._kernel, type_id)
        self.target = AttachTarget(type_id, fd)
        self.members: list[tuple[str, int]] = []

    def move_members(self) -> StructOpsMap:
        """The map's value, without the functions."""
        image = bytearray(self._kernel.sizeof(self._value_id))
        functions = []
        programs = dict(self._map.initial)
        places = {member.name: index for index, member in enumerate(self._kernel_struct.members)}
        for index, member in enumerate(self._struct.members):
            place = places.get(member.name)
            contents = self._contents(member)
            if place is None:
                if any(contents):
                    raise self._explain_refusal(
                        f"does not have a member {member.name!r}, which is not zero here"
                    )
                continue
            target = self._kernel_struct.members[place]
            at = self._base + target.bit_offset // 8
            self._check(member, target)
            if not is_function_pointer(self._btf, member.type_id):
                image[at : at + len(contents)] = contents
            elif index in programs:
                functions.append((programs[index], at))
                self.members.append((programs[index], place))
        return StructOpsMap(self._value_id, self.target.btf_fd, bytes(image), tuple(functions))

    def _contents(self, member: Member) -> bytes:
        start = member.bit_offset // 8
        return self._map.contents[start : start + self._btf.sizeof(member.type_id)]

    def _check(self, member: Member, target: Member) -> None:
        """Check that the kernel's member can take the value of the object's."""
        declared = spell(self._btf, member.type_id)
        actual = spell(self._kernel, target.type_id)
        if member.bit_size or target.bit_size:
            raise self._explain_refusal(
                f"has member {member.name!r} as a bit field, which cannot be set"
            )
        kinds = [
            btf.kind(btf.resolve(member_or_target.type_id))
            for btf, member_or_target in ((self._btf, member), (self._kernel, target))
        ]
        sizes = self._btf.sizeof(member.type_id), self._kernel.sizeof(target.type_id)
        is_pointer = kinds[0] is Kind.PTR
        if kinds[0] is not kinds[1] or (not is_pointer and sizes[0] != sizes[1]):
            reason = f"has member {member.name!r} as {actual}, but the object as {declared}"
            raise self._explain_refusal(reason)

    def _explain_refusal(self, reason: str) -> NotSupportedError:
        description = f"{self._source}: struct_ops {self._map.name!r}"
        return NotSupportedError(description, f"this kernel's struct {self._name} {reason}")

    def _find(self, types: KernelTypes) -> tuple[str, Btf, int]:
        """The module ("" for vmlinux), its BTF, and the id of `bpf_struct_ops_NAME` in it.

        The struct itself may be vmlinux's while a module makes it one for programs.
        """
        name = _PREFIX + self._name
        if own := kernel_btf().find(name, Kind.STRUCT):
            return "", kernel_btf(), own[0]
        if type_ids := types.modules.find(name, Kind.STRUCT):
            return type_ids[0]
        reason = "does not exist, or BPF programs cannot implement it"
        raise self._explain_refusal(f"{reason} ({name} is not in its BTF)")

    def _inside(self) -> tuple[int, int]:
        """The offset of the struct in the value, and its id."""
        for member in _struct(self._kernel, self._value_id).members:
            type_id = self._kernel.resolve(member.type_id)
            is_struct = self._kernel.kind(type_id) is Kind.STRUCT
            if is_struct and self._kernel.name(type_id) == self._name:
                return member.bit_offset // 8, type_id
        raise self._explain_refusal(f"is not part of its {_PREFIX}{self._name}")


def _struct(btf: Btf, type_id: int) -> Struct:
    btf_type = btf.type(type_id)
    assert isinstance(btf_type, Struct)
    return btf_type


def _not_created(error: KernelError, spec: MapSpec) -> KernelError:
    number = error.errno or 0
    needs_links = spec.flags & BPF_F_LINK and number == errno.EINVAL
    why = "this kernel does not support struct_ops links (Linux 6.4)" if needs_links else ""
    return KernelError(error.call, number, f"struct_ops {spec.name!r}", why=why)
