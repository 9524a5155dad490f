"""`rewrite_constants`: puts the values of config() and getopt() into a script."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping

from purebpf.script import tree
from purebpf.script.c_declarations import read_define
from purebpf.script.script_error import OptionError, ScriptError
from purebpf.script.settings import Config, Settings
from purebpf.script.statement_parser import StatementParser
from purebpf.similar import suggest

__all__ = ["rewrite_constants"]

_NO_NUMBERS = (tree.String, tree.Call, tree.Field, tree.Map, tree.Variable, tree.Deref)
_FALSE, _TRUE = ("false", "0"), ("true", "1")


def rewrite_constants(script: tree.Script, settings: Settings, config: Config) -> None:
    """Replace `config().name` and `getopt("name")` by literals, and names of macros by calls.

    Names of `#define` become its expression, unless that is a number.

    Raises:
        OptionError: options after `--` that the script does not have, or wrong values of them.
        ScriptError: a wrong call.
    """
    options: dict[str, str] = {}
    parameters = {name for macro in script.macros for name in macro.parameters}
    macros = {macro.name for macro in script.macros if not macro.parameters} - parameters
    defined = _defined_expressions(script)

    def change(node: tree.Node) -> tree.Node:
        if isinstance(node, tree.Field) and _is_config(node.base):
            return _config_value(node, config)
        if isinstance(node, tree.Call) and node.name == "getopt":
            return _option_value(node, settings.options, options)
        if isinstance(node, tree.Name) and node.name in macros:
            return tree.Call(node.start, node.end, node.name, [])
        if isinstance(node, tree.Name) and node.name in defined:
            return _at(copy.deepcopy(defined[node.name]), node)
        return node

    _rewrite(script, change)
    unknown = [name for name in settings.options if name not in options]
    if unknown:
        lines = [f"--{name}{': ' if text else ''}{text}" for name, text in options.items()]
        hint = "expected program options:" if lines else "the program has no options"
        hint += f" {lines[0]}" if len(lines) == 1 else "".join(f"\n    {line}" for line in lines)
        names = ", ".join(f"--{name}" for name in unknown)
        raise OptionError(f"unexpected program command line options: {names}", hint)


def _defined_expressions(script: tree.Script) -> dict[str, tree.Expression]:
    """Return the expressions of `#define` that are texts, or that only the run knows."""
    defined = {}
    for _, text in script.c_text:
        define = read_define(text) if text.startswith("#") else None
        if define is None:
            continue
        try:
            parser = StatementParser(define[1])
            expression = parser.expression()
        except ScriptError:
            continue
        is_whole = parser.token.kind == "end"
        if is_whole and any(isinstance(part, _NO_NUMBERS) for part in tree.walk(expression)):
            defined[define[0]] = expression
    return defined


def _at(expression: tree.Expression, node: tree.Node) -> tree.Expression:
    """Give an expression the place of another node, for messages."""
    for part in tree.walk(expression):
        part.start, part.end = node.start, node.end
    return expression


def _rewrite(node: tree.Node, change: Callable[[tree.Node], tree.Node]) -> tree.Node:
    """Change the nodes of a tree, the innermost first."""
    for name in node._fields:
        part = getattr(node, name)
        if isinstance(part, tree.Node):
            setattr(node, name, _rewrite(part, change))
        elif isinstance(part, list):
            changed = [_rewrite(x, change) if isinstance(x, tree.Node) else x for x in part]
            setattr(node, name, changed)
    return change(node)


def _is_config(node: tree.Expression) -> bool:
    is_call = isinstance(node, tree.Call) and not node.arguments
    return (
        isinstance(node, tree.Name | tree.Call)
        and node.name == "config"
        and (is_call or isinstance(node, tree.Name))
    )


def _config_value(node: tree.Field, config: Config) -> tree.Expression:
    value: int | str | bool | None = config.numbers.get(node.name)
    value = config.texts.get(node.name, value)
    value = config.flags.get(node.name, value)
    if value is None:
        names = [*config.numbers, *config.texts, *config.flags]
        message = f"{node.name}: not a known configuration option"
        raise ScriptError(message, node.start, node.end, suggest(node.name, names))
    return _literal(node, value)


def _literal(node: tree.Node, value: int | str | bool) -> tree.Expression:
    if isinstance(value, bool):
        return tree.Bool(node.start, node.end, value)
    if isinstance(value, str):
        return tree.String(node.start, node.end, value)
    if value < 0:
        inner = tree.Integer(node.start, node.end, -value)
        return tree.Unary(node.start, node.end, "-", inner)
    return tree.Integer(node.start, node.end, value)


def _option_value(
    node: tree.Call, given: Mapping[str, str | None], options: dict[str, str]
) -> tree.Expression:
    if not 1 <= len(node.arguments) <= 3:
        message = "getopt() takes a name, a default value and a description"
        raise ScriptError(message, node.start, node.end)
    name = node.arguments[0]
    if not isinstance(name, tree.String):
        message = "First argument to 'getopt' must be a string literal."
        raise ScriptError(message, name.start, name.end)
    description = node.arguments[2] if len(node.arguments) == 3 else None
    if description is not None and not isinstance(description, tree.String):
        message = "Function 'getopt' requires the third parameter to be a string literal."
        raise ScriptError(message, description.start, description.end)
    default = node.arguments[1] if len(node.arguments) > 1 else None
    options[name.value] = description.value if description else options.get(name.value, "")
    if name.value not in given:
        return default if default is not None else _literal(node, False)
    return _literal(node, _read_option(node, name.value, given[name.value], default))


def _read_option(
    node: tree.Node, name: str, text: str | None, default: tree.Expression | None
) -> int | str | bool:
    """Return the value of an option as a value of the type of its default."""
    problem = ""
    match default:
        case None | tree.Bool():
            if text is None or text.lower() in _TRUE + _FALSE:
                return text is None or text.lower() in _TRUE
            problem = "invalid boolean"
        case tree.String():
            if text is not None:
                return text
            problem = "requires a value"
        case tree.Integer() | tree.Unary(operand=tree.Integer()):
            try:
                return int(text or "", 0)
            except ValueError:
                problem = "invalid integer"
        case _:
            message = "Second argument to 'getopt' must be a string literal, integer literal, "
            raise ScriptError(f"{message}or a boolean literal.", node.start, node.end)
    raise OptionError(f"program command line option --{name} {problem} (value: {text or ''})")
