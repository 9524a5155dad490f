"""From the text of a filter to its tree: perf's grammar, and more.

    filter := group {"," group}             every one
    group  := all {"||" all}                any
    all    := term {"&&" term}              every one
    term   := "!" term | "(" filter ")" | test
    test   := FIELD OPERATOR VALUE | FIELD "in" RANGE | FIELD "in" "{" RANGE {"," RANGE} "}"
    range  := VALUE [".." VALUE]            both ends included

Text that perf 6.12 accepts means the same here. Blanks are optional everywhere. A comma binds
weakest, so `a || b, c` is `(a || b) && c`.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from purebpf.filter.fields import CONSTANTS, FIELDS, Field, Kind, constant
from purebpf.filter.syntax import (
    And,
    Comparison,
    Expression,
    Filter,
    FilterError,
    Membership,
    Not,
    Or,
    Range,
    TextSpan,
    Value,
)

__all__ = ["parse"]

_OPERATORS = ("==", "!=", ">=", "<=", ">", "<", "&")
_NAMED = frozenset({"==", "!="})
_DEPTH = 100
_TOP = 1 << 64
_COMM_LENGTH = 15  # TASK_COMM_LEN less the NUL

_BLANKS = re.compile(r"\s*", re.ASCII)  # others, such as U+00A0, may stand in a name
_WORD = re.compile(r"[A-Za-z0-9_]+")
_NAME = re.compile(r"""(?:(?!\.\.)[^\s\0,(){}|&!"<>=])+""", re.ASCII)
_PATH = re.compile(r"""[^\s\0,(){}|&!"<>=]+""", re.ASCII)
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


def parse(*texts: str) -> Filter:
    """The filter that a text is; several texts are one filter that asks for all of them.

    Raises:
        FilterError: a text is not a filter; shows where and why.
    """
    roots = []
    for text in texts:
        parser = _Parser(text)
        roots.append(parser.filter())
        parser.end()
    if len(texts) == 1:
        return Filter(texts[0], roots[0])
    return parse(", ".join(map(str, roots)))


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._previous = 0
        self._depth = 0
        self._skip()

    # The grammar

    def filter(self) -> Expression:
        return self._list(",", self._group, And)

    def _group(self) -> Expression:
        return self._list("||", self._all, Or)

    def _all(self) -> Expression:
        return self._list("&&", self._term, And)

    def _list(
        self, separator: str, part: Callable[[], Expression], join: type[And | Or]
    ) -> Expression:
        parts = [part()]
        while self._take(separator):
            parts.append(part())
        return parts[0] if len(parts) == 1 else join(tuple(parts))

    def _term(self) -> Expression:
        start = self._at
        negated = 0
        while not self._text.startswith("!=", self._at) and self._take("!"):
            negated += 1
        self._depth += 1 + negated
        if self._depth > _DEPTH:
            raise self._error(f"more than {_DEPTH} levels of nesting", start, start + 1)
        term = self._parse_parenthesised() if self._take("(") else self._test()
        self._depth -= 1 + negated
        for _ in range(negated):
            term = Not(term)
        return term

    def _parse_parenthesised(self) -> Expression:
        opened = self._previous
        inner = self.filter()
        if not self._take(")"):
            raise self._unexpected("')'", also=f"for the '(' of column {opened}")
        return inner

    def _test(self) -> Expression:
        start = self._at
        name = self._match(_WORD)
        if name is None:
            raise self._unexpected("a field")
        field = FIELDS.get(name)
        if field is None:
            raise self._error(_unknown_field(name), start, start + len(name))
        self._skip()
        before = self._at
        operator = self._operator(field)
        if operator == "in":
            ranges = self._ranges(field)
            return Membership(name, ranges, TextSpan(start, self._previous))
        value = self._value(field)
        if operator not in _operators_of(field):
            raise self._error(
                f"{name} takes {_list_words(_operators_of(field))}, not {operator!r}",
                before,
                before + len(operator),
            )
        return Comparison(name, operator, value, TextSpan(start, value.place.end))

    def _operator(self, field: Field) -> str:
        for operator in _OPERATORS:
            doubled = operator == "&" and self._text.startswith("&&", self._at)
            if not doubled and self._take(operator):
                return operator
        for operator in ("in", "under"):
            if self._at_word(operator):
                if operator == "under" and field.kind is not Kind.CGROUP:
                    raise self._error("only cgroup takes 'under'", self._at, self._at + 5)
                self._take(operator)
                return operator
        if self._text.startswith("=", self._at):
            raise self._error("unknown operator '='; write '=='", self._at, self._at + 1)
        raise self._unexpected(
            "an operator", also=f"after {field.name}: {_list_words(_OPERATORS)}, in"
        )

    # Values

    def _ranges(self, field: Field) -> tuple[Range, ...]:
        if not self._take("{"):
            return (self._range(field),)
        opened = self._previous
        ranges = [self._range(field)]
        while self._take(","):
            ranges.append(self._range(field))
        if not self._take("}"):
            raise self._unexpected("',' or '}'", also=f"for the '{{' of column {opened}")
        return tuple(ranges)

    def _range(self, field: Field) -> Range:
        low = self._value(field)
        if field.kind not in (Kind.NUMBER, Kind.USER, Kind.GROUP) or not self._take(".."):
            return Range(low)
        high = self._value(field)
        if low.number is not None and high.number is not None and low.number > high.number:
            raise self._error(
                f"the range ends before it begins: {low.number} is above {high.number}",
                low.place.start,
                high.place.end,
            )
        return Range(low, high)

    def _value(self, field: Field) -> Value:
        start = self._at
        if self._text.startswith("-", start) and field.kind is Kind.NUMBER:
            raise self._error(f"{field.name} is never negative", start, start + 1)
        quoted = self._text.startswith('"', start)
        if quoted and field.kind is not Kind.NUMBER:
            word = self._quotation()
        else:
            pattern = {Kind.NUMBER: _WORD, Kind.USER: _NAME, Kind.GROUP: _NAME}.get(
                field.kind, _PATH
            )
            matched = self._match(pattern)
            if matched is None:
                raise self._unexpected(field.kind.value)
            word = matched
        place = TextSpan(start, self._at)
        number = self._number(field, word, place)
        if field.kind is Kind.COMM and len(word.encode(errors="surrogateescape")) > _COMM_LENGTH:
            problem = f"a thread name has at most {_COMM_LENGTH} bytes"
            raise self._error(problem, *place)
        self._skip(start=place.end)
        return Value(word, number, place)

    def _quotation(self) -> str:
        start = self._at
        quoted = self._match(_QUOTED)
        if quoted is None:
            raise self._error("the closing '\"' is missing", start, start + 1)
        if len(quoted) == len('""') or "\0" in quoted:
            raise self._error("a name cannot be empty", start, self._at)
        return _ESCAPED.sub(r"\1", quoted[1:-1])

    def _number(self, field: Field, word: str, place: TextSpan) -> int | None:
        """The number that a word is; None for the name of something."""
        if field.kind not in (Kind.NUMBER, Kind.USER, Kind.GROUP):
            return None
        is_number = word.isascii() and word[0].isdigit()
        if not is_number:
            value = constant(field.name, word) if field.kind is Kind.NUMBER else None
            if value is None and field.kind is Kind.NUMBER:
                raise self._error(_unknown_constant(field, word), *place)
            return value
        try:
            number = int(word, 16 if word.startswith(("0x", "0X")) else 10)
        except ValueError:
            number = -1
        if number < 0 or "_" in word:
            raise self._error(f"{word!r} is not a number", *place)
        if number >= _TOP:
            raise self._error(f"{word} does not fit in 64 bits", *place)
        return number

    # The text

    def end(self) -> None:
        if self._at < len(self._text):
            raise self._unexpected("',', '||', '&&' or the end")

    def _take(self, token: str) -> bool:
        """Step over `token` if it is next, and over the blanks behind it."""
        if not self._text.startswith(token, self._at):
            return False
        self._skip(start=self._at + len(token))
        return True

    def _at_word(self, word: str) -> bool:
        end = self._at + len(word)
        return self._text.startswith(word, self._at) and not _WORD.match(self._text, end)

    def _match(self, pattern: re.Pattern[str]) -> str | None:
        token = pattern.match(self._text, self._at)
        if token is None:
            return None
        self._at = token.end()
        return token.group()

    def _skip(self, start: int | None = None) -> None:
        self._previous = self._at if start is None else start
        blanks = _BLANKS.match(self._text, self._previous)
        assert blanks is not None  # it matches nothing, too
        self._at = blanks.end()

    def _unexpected(self, wanted: str, also: str = "") -> FilterError:
        path_match = _PATH.match(self._text, self._at)
        tail = f" ({also})" if also else ""
        if self._at >= len(self._text):
            if not self._text.strip():
                return self._error("the filter is empty", 0, 0)
            return self._error(f"{wanted} is missing at the end{tail}", self._at, self._at)
        end = path_match.end() if path_match else self._at + 1
        shown = self._text[self._at : end]
        return self._error(f"expected {wanted}, got {shown!r}{tail}", self._at, end)

    def _error(self, problem: str, start: int, end: int) -> FilterError:
        return FilterError(problem, self._text, TextSpan(start, end))


def _operators_of(field: Field) -> tuple[str, ...]:
    """The operators of a field besides `in`."""
    if field.kind is Kind.CGROUP:
        return ("==", "!=", "under")
    if field.kind in (Kind.COMM, Kind.SYMBOL):
        return ("==", "!=")
    return _OPERATORS


def _list_words(words: tuple[str, ...]) -> str:
    return ", ".join(words)


def _unknown_field(name: str) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name, FIELDS, n=3)
    hint = f"; similar: {', '.join(close)}" if close else f"; known: {', '.join(FIELDS)}"
    return f"unknown field {name!r}{hint}"


def _unknown_constant(field: Field, word: str) -> str:
    known = CONSTANTS.get(field.name)
    if known:
        return f"{word!r} is not a value of {field.name}, which has {', '.join(known)}"
    return f"{field.name} takes a number, got {word!r}"
