"""`Checker`: types of all expressions, variables and maps, found over the whole script.

Types of maps and variables grow from use to use: the checker reads all blocks until nothing
changes, then once more to report the values that have no type.
"""

from __future__ import annotations

import copy
import re
from itertools import zip_longest

from purebpf.late_pattern import compile_later
from purebpf.script import tree
from purebpf.script.constants import fold
from purebpf.script.direct_points import direct_point
from purebpf.script.expression_types import ExpressionTypes
from purebpf.script.functions.aggregates import MAP_FUNCTIONS, aggregate_type
from purebpf.script.host import Host
from purebpf.script.macros import Macros
from purebpf.script.map_info import MapInfo
from purebpf.script.point import (
    EXPECTED,
    DangerousProbeError,
    MissingProbeError,
    NoProbesError,
    Point,
)
from purebpf.script.points import expand
from purebpf.script.script_error import ScriptError
from purebpf.script.settings import Config, Settings
from purebpf.script.types import AGGREGATES, I64, NONE, Type, integer, spell, tuple_of, unify
from purebpf.script.unit import Unit
from purebpf.script.world import World

__all__ = ["Checker"]

_ROUNDS = 30
_NO_POINTS = "Probe has no valid attach points."
_PARAMETER = compile_later(r"\$(\d+)")
_SCALAR_CASTS = ("int", "bool", "ptr")


class Checker(ExpressionTypes):
    """Checks one script.

    Attributes:
        units: a program for each attach point.
        maps: the maps by name.
        warnings: remarks that do not stop the script.
    """

    def __init__(
        self, script: tree.Script, world: World, host: Host, settings: Settings, config: Config
    ) -> None:
        super().__init__(world, host, settings, config)
        self._script = script
        self.macros = Macros(script.macros)
        self.warnings: list[ScriptError] = []
        self.units = self._expand()

    def _expand(self) -> list[Unit]:
        units: list[Unit] = []
        for probe in self._script.probes:
            points = [
                (node, point)
                for node in probe.points
                for point in self._find_points(self._with_parameters(node))
            ]
            if not points:
                self._remove(probe)
            self._check_number(probe, len(units) + len(points))
            points = [pair for pair in points if self._is_wanted(pair[1])]
            for node, point in points:
                self._check_danger(node, point)
            for index, (_, point) in enumerate(points):
                own = probe if index == len(points) - 1 else copy.deepcopy(probe)
                direct, fields = direct_point(point, own, self.macros) or (point, None)
                units.append(Unit(len(units), direct, own, fields))
        if not units:
            raise NoProbesError(self.warnings)
        return units

    def _check_number(self, probe: tree.Probe, count: int) -> None:
        limits, message, name = self.config.numbers, "", ""
        if count > (limit := limits["max_bpf_progs"]):
            message = f"Your program is trying to generate more than {count} BPF programs, which "
            message += f"exceeds the current limit of {limit}"
            name = "BPFTRACE_MAX_BPF_PROGS"
        elif count > (limit := limits["max_probes"]):
            message = f"Can't attach to {count} probes because it exceeds the current limit of "
            message += f"{limit} probes."
            name = "BPFTRACE_MAX_PROBES"
        if message:
            hint = f"You can increase the limit through the {name} environment variable."
            raise ScriptError(message, probe.start, probe.points[-1].end, hint)

    def _check_danger(self, node: tree.Point, point: Point) -> None:
        danger = point.danger
        if danger is not None and not (danger.can_be_forced and self.settings.is_unsafe):
            raise DangerousProbeError(danger.message, node.start, node.end)

    def _is_wanted(self, point: Point) -> bool:
        """Return True for probes that the filter of the command line lets pass."""
        wanted = self.settings.probe_filter
        return point.kind in ("begin", "end") or re.search(wanted, point.name) is not None

    def _find_points(self, node: tree.Point) -> list[Point]:
        """Return the places of an attach point; none if it is missing, and may be."""
        try:
            return expand(node, self.host)
        except MissingProbeError as error:
            choice = self.config.texts["missing_probes"]
            if error.forced is not None and (choice != "error" or self.settings.is_unsafe):
                self._warn(error.why.removeprefix("WARNING: "), node)
            if error.forced is not None and self.settings.is_unsafe:
                return [error.forced]
            if choice == "error":
                raise
            if choice == "warn":
                self._warn(f"{error.missing} Skipping.", node)
        return []

    def _remove(self, probe: tree.Probe) -> None:
        """Leave a block out that has no places, if that may be: no name fits its patterns."""
        choice, node = self.config.texts["missing_probes"], probe.points[0]
        span = tree.Node(node.start, probe.points[-1].end)
        if choice == "error":
            raise ScriptError(f"{_NO_POINTS} {EXPECTED}", span.start, span.end)
        if choice == "warn":
            self._warn(f"{_NO_POINTS} It is being removed which may cause issues with "
                       "program behavior.", span)  # fmt: skip

    def _with_parameters(self, node: tree.Point) -> tree.Point:
        """Return an attach point with values in the places of `$1`."""
        text = _PARAMETER.sub(lambda match: str(self.settings.parameter(int(match[1]))), node.text)
        return tree.Point(node.start, node.end, text)

    def check(self) -> None:
        """Find all types.

        Raises:
            ScriptError: a type error, or a value without a type.
        """
        self._declare_maps()
        self._find_types()
        self._settle_maps()
        self.is_final = True
        for unit in self.units:
            self._check_unit(unit)
        self._warn_of_maps()

    def _settle_maps(self) -> None:
        """Give numbers to maps whose values come from themselves only: `@x = @x + 1`."""
        if not any(info.is_assigned and info.value is None for info in self.maps.values()):
            return
        for info in self.maps.values():
            if info.is_assigned and info.value is None:
                info.value = I64
        self._find_types()

    def _find_types(self) -> None:
        for _ in range(_ROUNDS):
            self.changed = False
            for unit in self.units:
                self._check_unit(unit)
            if not self.changed:
                break

    def _warn(self, message: str, node: tree.Node) -> None:
        if all((item.message, item.start) != (message, node.start) for item in self.warnings):
            self.warnings.append(ScriptError(message, node.start, node.end))

    def _warn_of_maps(self) -> None:
        """Warn of declared maps without a value, and forget them."""
        for node in self._script.maps:
            if self.maps[node.name].value is None:
                self._warn(f"Unused map: {node.name}", node)
                del self.maps[node.name]

    def _declare_maps(self) -> None:
        for node in self._script.maps:
            if node.kind not in ("hash", "lruhash", "percpuhash", "percpulruhash", "percpuarray"):
                raise ScriptError(f"Invalid bpf map type: {node.kind}", node.start, node.end)
            info = self.map_info(node.name)
            info.kind, info.entries = node.kind, node.entries

    def _check_unit(self, unit: Unit) -> None:
        self.unit = unit
        self.scopes = [{}]
        self.loops = 0
        if unit.probe.predicate is not None:
            self.infer(unit.probe.predicate)
        self._block(unit.probe.body)

    def _block(self, block: tree.Block) -> None:
        self.scopes.append({})
        for statement, following in zip_longest(block.statements, block.statements[1:]):
            self._statement(statement)
            if self.is_final and following is not None and _leaves(statement):
                self._warn("Unreachable statement.", following)
        self.scopes.pop()

    def block_value(self, node: tree.BlockValue) -> Type | None:
        """Check the statements of a block, and return the type of its value."""
        self.scopes.append({})
        for statement in node.statements:
            self._statement(statement)
        type_ = NONE if node.result is None else self.infer(node.result)
        self.scopes.pop()
        return type_

    def _statement(self, node: tree.Statement) -> None:
        match node:
            case tree.Discard():
                self._discard(node.value)
            case tree.Assign(target=tree.Map() as target):
                self._assign_map(node, target)
            case tree.Assign(target=tree.Variable() as target):
                self._assign_variable(node, target)
            case tree.Let():
                self._let(node)
            case tree.If():
                self._condition(node.test)
                self._block(node.yes)
                if node.no is not None:
                    self._block(node.no)
            case tree.Unroll():
                self._unroll(node)
            case tree.While():
                self._condition(node.test)
                self._loop(node.body)
            case tree.For():
                self._for(node)
            case tree.Jump(word="return") if node.value is not None:
                self.infer(node.value)
            case tree.Jump() if node.word != "return" and not self.loops:
                message = f"{node.word} statements must be used in a loop"
                raise ScriptError(message, node.start, node.end)

    def _discard(self, value: tree.Expression) -> None:
        if isinstance(value, tree.Call) and value.name in MAP_FUNCTIONS:
            message = f"{value.name}() must be assigned directly to a map"
            raise ScriptError(message, value.start, value.end)
        self.infer(value)

    def _condition(self, test: tree.Expression) -> None:
        type_ = self.infer(test)
        if self.is_final and type_ is not None and not (type_.is_scalar or type_.kind == "string"):
            message = f"Invalid condition: {spell(type_)}"
            raise ScriptError(message, test.start, test.end)

    def _loop(self, body: tree.Block) -> None:
        self.loops += 1
        self._block(body)
        self.loops -= 1

    def _unroll(self, node: tree.Unroll) -> None:
        self.infer(node.count)
        count = fold(node.count, self.settings)
        if count is None:
            message = "unroll() needs a number that is known before the script runs"
            raise ScriptError(message, node.count.start, node.count.end)
        if not 1 <= count <= 100:
            side = "minimum value is 1" if count < 1 else "maximum value is 100"
            raise ScriptError(f"unroll {side}", node.count.start, node.count.end)
        self._block(node.body)

    def _for(self, node: tree.For) -> None:
        if isinstance(node.source, tree.Map):
            self._for_map(node, node.source)
            return
        for bound in (node.source.first, node.source.last):
            type_ = self.infer(bound)
            if type_ is not None and type_.kind != "int":
                message = f"Loop range requires an integer, not {spell(type_)}"
                raise ScriptError(message, bound.start, bound.end)
        self.scopes.append({})
        slot = self.declare(node.target)
        self.widen_slot(slot, integer(8, True), node.target)
        self._loop(node.body)
        self.scopes.pop()

    def _for_map(self, node: tree.For, source: tree.Map) -> None:
        """Check a loop over the keys and values of a map."""
        info = self.map_info(source.name)
        if info.is_scalar or (self.is_final and (info.key is None or info.value is None)):
            word = "has no explicit keys (scalar map)" if info.is_scalar else "is never assigned"
            message = f"{source.name} {word}, and cannot be used for iteration"
            raise ScriptError(message, source.start, source.end)
        if info.value is not None and info.value.kind in ("hist", "lhist", "tseries", "stats"):
            message = f"Loops over maps of {info.value.kind}() are not supported yet"
            raise ScriptError(message, source.start, source.end)
        self.scopes.append({})
        slot = self.declare(node.target)
        if info.key is not None and info.value is not None:
            self.widen_slot(slot, tuple_of((info.key, info.read_type())), node.target)
        self._loop(node.body)
        self.scopes.pop()

    def _let(self, node: tree.Let) -> None:
        value = self.infer(node.value) if node.value is not None else None
        if self.lookup(node.target.name) is not None and node.target.slot is None:
            message = f"Variable {node.target.name} was already declared. Variable shadowing is "
            raise ScriptError(f"{message}not allowed.", node.start, node.target.end)
        slot = self.declare(node.target)
        if node.declared is not None:
            declared = self.named_type(node.declared)
            if slot.type is None and declared is not None:
                slot.type, slot.declared, self.changed = declared, True, True
        if value is not None and node.value is not None:
            self.widen_slot(slot, value, node.value)

    def _assign_variable(self, node: tree.Assign, target: tree.Variable) -> None:
        if isinstance(node.value, tree.Call) and node.value.name in MAP_FUNCTIONS:
            message = f"Value '{node.value.name}_t' cannot be assigned to a scratch variable."
            raise ScriptError(message, target.start, node.end)
        value = self.infer(node.value)
        slot = self.lookup(target.name)
        if slot is None:
            if node.operator != "=":
                message = f"Undefined or undeclared variable: {target.name}"
                raise ScriptError(message, target.start, target.end)
            slot = self.declare(target)
        target.slot = slot
        if value is None:
            return
        if node.operator != "=":
            self._check_arithmetic(node, slot.type, value)
            if slot.type is not None and slot.type.kind == "ptr":
                return
        self.widen_slot(slot, value, node.value)
        if slot.type is not None:
            target.type = slot.type

    def _check_arithmetic(self, node: tree.Assign, target: Type | None, value: Type) -> None:
        for type_ in (target, value):
            if type_ is not None and type_.kind not in _SCALAR_CASTS:
                message = f"The {node.operator}= operator can not be used on a value of type "
                raise ScriptError(f"{message}'{spell(type_)}'", node.start, node.end)

    def _assign_map(self, node: tree.Assign, target: tree.Map) -> None:
        info = self.map_info(target.name)
        self.check_key(info, target)
        value = node.value
        if isinstance(value, tree.BlockValue) and _is_assigned_inside(node, value):
            self.block_value(value)
            return
        if isinstance(value, tree.BlockValue) and _aggregates(value.result):
            self._assign_from_block(node, value)
            return
        if isinstance(value, tree.Call) and value.name in MAP_FUNCTIONS:
            if node.operator != "=":
                raise ScriptError(f"{value.name}() must be assigned", node.start, node.end)
            self._widen_map(info, aggregate_type(self, value), node)
            return
        type_ = self.infer(value)
        info.is_assigned |= node.operator not in "+-"
        if type_ is None:
            return
        if node.operator != "=":
            self._check_arithmetic(node, info.value, type_)
            type_ = integer(8, type_.signed or node.operator == "-")
        if type_.has_no_value:
            message = f"Value of type '{spell(type_)}' cannot be assigned to a map"
            raise ScriptError(message, value.start, value.end)
        if isinstance(value, tree.Map) and type_.kind in AGGREGATES:
            message = f"Map value '{spell(type_)}' cannot be assigned from one map to another."
            raise ScriptError(message, value.start, value.end)
        self._widen_map(info, type_, node)
        target.type = info.value or NONE

    def _assign_from_block(self, node: tree.Assign, value: tree.BlockValue) -> None:
        """Check `@x = { ...; avg($y) }` as a block that ends with the assignment."""
        assert value.result is not None
        inner = tree.Assign(node.start, node.end, node.operator, node.target, value.result)
        node.value = tree.BlockValue(value.start, value.end, [*value.statements, inner], None)
        self.block_value(node.value)

    def _widen_map(self, info: MapInfo, new: Type, node: tree.Assign) -> None:
        new = self.kept(new)
        old = info.value
        if old is None:
            info.value, self.changed = new, True
            return
        wider = new if old == new else unify(old, new)
        is_aggregate = bool(AGGREGATES & {old.kind, new.kind})
        if (
            wider is not None
            and is_aggregate
            and (old.numbers, old.text) != (new.numbers, new.text)
        ):
            message = f"Different {new.kind} arguments in a single map unsupported"
            raise ScriptError(message, node.start, node.end)
        if wider is None or (is_aggregate and old != wider):
            message = f"Type mismatch for {info.name}: trying to assign value of type "
            message += f"'{spell(new)}' when map already has a type '{spell(old)}'"
            raise ScriptError(message, node.start, node.end)
        if wider != old:
            info.value, self.changed = wider, True


def _aggregates(node: tree.Expression | None) -> bool:
    return isinstance(node, tree.Call) and node.name in MAP_FUNCTIONS


def _is_assigned_inside(node: tree.Assign, value: tree.BlockValue) -> bool:
    """Return True for a block that `_assign_from_block` made, in a later round."""
    last = value.statements[-1] if value.statements else None
    return value.result is None and isinstance(last, tree.Assign) and last.target is node.target


def _leaves(node: tree.Statement) -> bool:
    """Return True for exit() and jumps."""
    is_exit = isinstance(node, tree.Discard) and isinstance(node.value, tree.Call)
    return isinstance(node, tree.Jump) or (is_exit and node.value.name == "exit")  # type: ignore[attr-defined]
