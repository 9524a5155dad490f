"""Types of maps and variables: the widest that the uses of each need."""

from __future__ import annotations

from purebpf.script import tree
from purebpf.script.host import Host
from purebpf.script.macros import Macros
from purebpf.script.map_info import MapInfo
from purebpf.script.program_types import program_type
from purebpf.script.script_error import ScriptError
from purebpf.script.settings import Config, Settings
from purebpf.script.types import AGGREGATES, Type, c_size, spell, tuple_of, unify, word
from purebpf.script.unit import Unit
from purebpf.script.world import World

__all__ = ["StoredTypes"]


class StoredTypes:
    """The types of maps and variables, by the values that the script puts into them.

    Attributes:
        maps: all maps by name.
        unit: the block.
        changed: True if a type has changed in this round.
        is_final: True in the last round, when every expression must have a type.
    """

    unit: Unit

    def __init__(self, world: World, host: Host, settings: Settings, config: Config) -> None:
        self.world, self.host, self.settings, self.config = world, host, settings, config
        self.maps: dict[str, MapInfo] = {}
        self.macros = Macros([])
        self.scopes: list[dict[str, tree.Slot]] = [{}]
        self.loops = 0
        self.changed = self.is_final = False
        self._macros: dict[int, tree.Expression] = {}
        self._expanding = 0

    def map_info(self, name: str) -> MapInfo:
        """Return the map with a name; the first use makes it."""
        if name not in self.maps:
            label = f"m{len(self.maps)}_{name[1:]}"[:15]
            self.maps[name] = MapInfo(name, label, self.config.numbers["max_map_keys"])
        return self.maps[name]

    def lookup(self, name: str) -> tree.Slot | None:
        """Find a variable in the blocks around."""
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return None

    def declare(self, node: tree.Variable) -> tree.Slot:
        """Make a variable in the innermost block; the same one in each round."""
        if node.slot is None:
            node.slot = tree.Slot(node.name)
            self.unit.slots.append(node.slot)
        self.scopes[-1][node.name] = node.slot
        return node.slot

    def widen_slot(self, slot: tree.Slot, new: Type, node: tree.Node) -> None:
        """Let a variable hold values of another type, too.

        Raises:
            ScriptError: no type holds both.
        """
        new = self.kept(new)
        if slot.type is None:
            slot.type, self.changed = new, True
            return
        wider = unify(slot.type, new)
        if wider is None or new.has_no_value:
            message = f"Type mismatch for {slot.name}: trying to assign value of type "
            message += f"'{spell(new)}' when variable already contains a value of type "
            raise ScriptError(f"{message}'{spell(slot.type)}'", node.start, node.end)
        if slot.declared and new.kind == "string" and new.size > slot.type.size:
            return
        if not slot.declared:
            self.changed |= wider != slot.type
            slot.type = wider

    def kept(self, type_: Type) -> Type:
        """Return the type in which a variable or a map holds a value: whole words."""
        if type_.kind == "int" and not type_.name.startswith("enum"):
            return word(signed=type_.signed, narrow=c_size(type_))
        if type_.kind in ("tuple", "record"):
            return tuple_of(map(self.kept, type_.items), type_.names)
        return type_

    def named_type(self, node: tree.TypeName) -> Type | None:
        """Return the type that a script names; None for `typeof(x)` if it is not known yet.

        Raises:
            ScriptError: there is no such type.
        """
        if node.of is not None and self.infer(node.of) is None:
            return None
        return self.world.type_of(node, self._program_type)

    def finds_type(self, name: str) -> bool:
        """Return True if the script, the program or the kernel has a type of this name."""
        return (self.world.named(name) or self._program_type(name)) is not None

    def _program_type(self, name: str) -> Type | None:
        """Find a type of the program that the block probes."""
        return program_type(self.unit.point, self.host, name)

    def check_key(self, info: MapInfo, node: tree.Map) -> None:
        """Take the key of a use of a map into its type.

        Raises:
            ScriptError: another use has another kind of key.
        """
        is_scalar = node.key is None
        if info.is_scalar is None:
            info.is_scalar, self.changed = is_scalar, True
        elif info.is_scalar != is_scalar:
            message = f"{info.name} used as a map {'without' if is_scalar else 'with'} an explicit "
            message += f"key, previously used {'with' if is_scalar else 'without'} one"
            raise ScriptError(message, node.start, node.end)
        if node.key is not None:
            self.widen_key(info, self.infer(node.key), node.key)

    def widen_key(self, info: MapInfo, new: Type | None, node: tree.Node) -> None:
        """Take the type of a key into the type of a map's keys.

        Raises:
            ScriptError: no type holds both.
        """
        if new is None:
            return
        new = self.kept(new)
        if new.has_no_value or new.kind in AGGREGATES:
            message = f"{spell(new)} cannot be used as a map key"
            raise ScriptError(message, node.start, node.end)
        wider = new if info.key is None else unify(info.key, new)
        if wider is None:
            assert info.key is not None
            message = f"Argument mismatch for {info.name}: trying to access with arguments: "
            message += f"'{spell(new, is_narrow=True)}' when map expects arguments: "
            message += f"'{spell(info.key, is_narrow=True)}'"
            raise ScriptError(message, node.start, node.end)
        self.changed |= wider != info.key
        info.key = wider

    def infer(self, node: tree.Expression) -> Type | None:
        """Find the type of an expression; None if it depends on one that is not known yet."""
        raise NotImplementedError
