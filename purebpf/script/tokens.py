"""Tokens of a script: read one at a time, because attach points have a grammar of their own."""

from __future__ import annotations

import re
from collections.abc import Mapping

from purebpf.script.script_error import ScriptError
from purebpf.tuples import NamedTuple

__all__ = ["Token", "read_token", "skip_space", "unescape"]

_SPACE = re.compile(r"(?:[ \t\r\n\f\v]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_TOKEN = re.compile(
    r"""(?P<name>[A-Za-z_]\w*)
  |(?P<variable>\$[A-Za-z_]\w*)
  |(?P<parameter>\$(?:\d+|\#))
  |(?P<map>@\w*)
  |(?P<number>0[xX][0-9a-fA-F_]+|\d[\d_]*(?:[eE]\d+)?)(?P<suffix>[A-Za-z]\w*)?
  |(?P<string>"(?:[^"\\]|\\.)*")
  |(?P<operator><<=|>>=|\.\.|\+\+|--|&&|\|\||<<|>>|<=|>=|==|!=|\+=|-=|\*=|/=|%=|&=|\|=|\^=|->
   |[-+*/%<>=!~&|^?:;,.(){}\[\]\#])""",
    re.VERBOSE | re.DOTALL,
)
_DURATIONS: Mapping[str, int] = {
    "ns": 1,
    "us": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
    "d": 86400 * 10**9,
}
_C_SUFFIXES = frozenset({"u", "l", "ul", "lu", "ll", "ull", "llu"})
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "v": "\v", "f": "\f"}
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{1,2}|[0-7]{1,3}|.)", re.DOTALL)


class Token(NamedTuple):
    """One word of a script.

    `kind` is "name", "variable", "parameter", "map", "number", "string", "operator" or "end";
    `number` is the value of a number, `string` the text of a string literal.
    """

    kind: str
    text: str
    start: int
    end: int
    number: int = 0
    string: str = ""


def skip_space(text: str, position: int) -> int:
    """Return the place behind white space and comments.

    Raises:
        ScriptError: a comment does not end.
    """
    match = _SPACE.match(text, position)
    place = match.end() if match else position
    if text.startswith("/*", place):
        raise ScriptError("unterminated comment", place, len(text))
    return place


def read_token(text: str, position: int) -> Token:
    """Read the token at a position; its kind is "end" at the end of the text.

    Raises:
        ScriptError: no token begins here, or a number is too large.
    """
    start = skip_space(text, position)
    if start >= len(text):
        return Token("end", "", start, start)
    match = _TOKEN.match(text, start)
    if match is None:
        if text[start] == '"':
            raise ScriptError("unterminated string", start, start + 1)
        raise ScriptError(f"unexpected character {text[start]!r}", start, start + 1)
    kind, end = match.lastgroup or "operator", match.end()
    if kind in ("number", "suffix"):
        return Token("number", match.group(), start, end, number=_number(match))
    if kind == "string":
        return Token(kind, match.group(), start, end, string=unescape(match.group()[1:-1]))
    return Token(kind, match.group(), start, end)


def unescape(text: str) -> str:
    r"""Replace escapes such as `\n`, `\x41` and `\101`."""
    return _ESCAPE.sub(_replace, text)


def _replace(match: re.Match[str]) -> str:
    code = match[1]
    if code[0] == "x" and len(code) > 1:
        return chr(int(code[1:], 16))
    if code[0] in "01234567":
        return chr(int(code, 8) & 255)
    return _ESCAPES.get(code, code)


def _number(match: re.Match[str]) -> int:
    digits, suffix = match["number"].replace("_", ""), match["suffix"] or ""
    start, end = match.span()
    if suffix not in _DURATIONS and suffix and suffix.lower() not in _C_SUFFIXES:
        raise ScriptError(f"invalid integer suffix {suffix!r}", start, end)
    number = _digits(digits, start, end) * _DURATIONS.get(suffix, 1)
    if number >= 1 << 64:
        raise ScriptError(f"{match.group()} does not fit into 64 bits", start, end)
    return number


def _digits(digits: str, start: int, end: int) -> int:
    if digits[:2] in ("0x", "0X"):
        if len(digits) > 100:
            raise ScriptError("the number does not fit into 64 bits", start, end)
        if len(digits) == 2:
            raise ScriptError(f"{digits} has no digits", start, end)
        return int(digits, 16)
    mantissa, _, exponent = digits.lower().partition("e")
    if len(mantissa) > 100 or int(exponent or 0) > 30:
        raise ScriptError("the number does not fit into 64 bits", start, end)
    if exponent:
        return int(f"{mantissa}{'0' * int(exponent)}")
    if len(digits) > 1 and digits[0] == "0":
        try:
            return int(digits, 8)
        except ValueError:
            raise ScriptError(f"invalid octal number {digits}", start, end) from None
    return int(digits)
