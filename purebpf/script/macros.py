"""Macros: calls are replaced by copies of the macro's body."""

from __future__ import annotations

import copy
from collections.abc import Mapping

from purebpf.script import tree
from purebpf.script.script_error import ScriptError

__all__ = ["Macros"]

_MOST = 500


class Macros:
    """The macros of a script. Macros of one name differ in the number of their parameters."""

    def __init__(self, macros: list[tree.Macro]) -> None:
        self._macros: dict[str, list[tree.Macro]] = {}
        for macro in macros:
            self._macros.setdefault(macro.name, []).append(macro)
        self._expansions = 0

    def __contains__(self, name: str) -> bool:
        return name in self._macros

    def takes(self, name: str, count: int) -> bool:
        """Return True if a macro of this name has this number of parameters."""
        return any(len(macro.parameters) == count for macro in self._macros.get(name, ()))

    def expand(self, node: tree.Call) -> tree.BlockValue:
        """Return a copy of a macro's body for a call; its own variables get names of their own.

        Raises:
            ScriptError: no macro takes these arguments, or macros call themselves.
        """
        candidates = self._macros[node.name]
        macro = next((m for m in candidates if len(m.parameters) == len(node.arguments)), None)
        if macro is None:
            wanted = " or ".join(str(len(item.parameters)) for item in candidates)
            message = f"Call to {node.name}() has the wrong number of arguments: {wanted} expected,"
            raise ScriptError(f"{message} {len(node.arguments)} given", node.start, node.end)
        self._expansions += 1
        if self._expansions > _MOST:
            raise ScriptError(f"macro {node.name} calls itself", node.start, node.end)
        binding = dict(zip(macro.parameters, node.arguments, strict=True))
        for name, value in binding.items():
            _check_argument(node.name, name, value)
        body = copy.deepcopy(macro.body)
        made = _replace(body, binding, f"#{self._expansions}", node)
        assert isinstance(made, tree.BlockValue)
        return made


def _check_argument(macro: str, name: str, value: tree.Expression) -> None:
    kind = {"$": "variable", "@": "map"}.get(name[0])
    fits = {"variable": tree.Variable, "map": tree.Map}
    if kind is not None and not isinstance(value, fits[kind]):
        message = f"Mismatched arg. {macro} expects a {kind} for {name}"
        raise ScriptError(message, value.start, value.end)


def _named(node: tree.TypeName, argument: tree.Expression) -> tree.TypeName:
    """Return the type that a parameter means: `typeof(...)`, or the type of an expression."""
    if not isinstance(argument, tree.TypeArgument):
        return tree.TypeName(node.start, node.end, "", node.suffixes, argument)
    target = argument.target
    suffixes = (*target.suffixes, *node.suffixes)
    return tree.TypeName(node.start, node.end, target.name, suffixes, target.of)


def _replace(
    node: tree.Node, binding: Mapping[str, tree.Expression], mark: str, call: tree.Node
) -> tree.Node:
    """Put arguments in the places of parameters, in a copy of the body."""
    if isinstance(node, tree.Name) and node.name in binding:
        return copy.deepcopy(binding[node.name])
    if isinstance(node, tree.TypeName) and node.name in binding:
        return _named(node, copy.deepcopy(binding[node.name]))
    if isinstance(node, tree.Call) and not node.origin:
        node.origin = node.start, node.end
    node.start, node.end = call.start, call.end
    for name in node._fields:
        part = getattr(node, name)
        if isinstance(part, tree.Node):
            setattr(node, name, _replace(part, binding, mark, call))
        elif isinstance(part, list):
            replaced = [
                _replace(inner, binding, mark, call) if isinstance(inner, tree.Node) else inner
                for inner in part
            ]
            setattr(node, name, replaced)
    if isinstance(node, tree.Variable):
        argument = binding.get(node.name)
        node.name = argument.name if isinstance(argument, tree.Variable) else node.name + mark
    elif isinstance(node, tree.Map) and isinstance(target := binding.get(node.name), tree.Map):
        node.name = target.name
        node.key = node.key if node.key is not None else copy.deepcopy(target.key)
    return node
