"""Expressions, by precedence climbing."""

from __future__ import annotations

import re
from collections.abc import Mapping

from purebpf.script import tree
from purebpf.script.script_error import ScriptError
from purebpf.script.token_stream import TokenStream
from purebpf.script.tokens import read_token

__all__ = ["ExpressionParser"]

_BINARY: Mapping[str, int] = {
    "||": 1, "&&": 2, "|": 3, "^": 4, "&": 5, "==": 6, "!=": 6, "<": 7, "<=": 7, ">": 7, ">=": 7,
    "<<": 8, ">>": 8, "+": 9, "-": 9, "*": 10, "/": 10, "%": 10,
}  # fmt: skip
"""Binary operators by how strongly they bind."""
_C_WORDS = frozenset({"unsigned", "signed", "long", "short", "int", "char"})
_TYPES = re.compile(
    r"(?:u?int(?:8|16|32|64)(?:_t)?|bool|void|size_t|string|buffer|inet|[su](?:8|16|32|64))$"
)
_TAGS = ("struct", "union", "enum")
_DEEPEST = 200


class ExpressionParser(TokenStream):
    """Reads expressions and types."""

    _in_predicate = False
    _depth = 0

    def expression(self) -> tree.Expression:
        """Read an expression.

        Raises:
            ScriptError: a syntax error.
        """
        self._depth += 1
        if self._depth > _DEEPEST:
            raise ScriptError("the expression is nested too deeply", self.token.start)
        test = self._binary(1)
        if self.accept("?"):
            yes = test if self.is_next(":") else self.expression()
            self.expect(":")
            no = self.expression()
            test = tree.Ternary(test.start, self.end, test, yes, no)
        self._depth -= 1
        return test

    def _binary(self, least: int) -> tree.Expression:
        left = self._unary()
        while self.token.kind == "operator":
            operator = self.token.text
            strength = _BINARY.get(operator, 0)
            if strength < least or (operator == "/" and self._ends_predicate()):
                break
            self.take()
            right = self._binary(strength + 1)
            left = tree.Binary(left.start, self.end, operator, left, right)
        return left

    def _ends_predicate(self) -> bool:
        return self._in_predicate and read_token(self.text, self.token.end).text == "{"

    def _unary(self) -> tree.Expression:
        token = self.token
        self._depth += 1
        if self._depth > _DEEPEST:
            raise ScriptError("the expression is nested too deeply", token.start)
        made = self._prefixed()
        self._depth -= 1
        return made

    def _prefixed(self) -> tree.Expression:
        token = self.token
        if token.kind == "operator":
            if token.text in ("!", "-", "~", "+"):
                self.take()
                operand = self._unary()
                if token.text == "+":
                    return operand
                return tree.Unary(token.start, self.end, token.text, operand)
            if token.text == "*":
                self.take()
                return self._deref(token.start)
            if token.text == "&":
                self.take()
                operand = self._unary()
                return tree.AddressOf(token.start, self.end, operand)
            if token.text in ("++", "--"):
                self.take()
                target = self._unary()
                return self._step(token.start, token.text, target, is_prefix=True)
            if token.text == "(" and (cast := self._cast()) is not None:
                return cast
        return self._postfix(self._primary())

    def _deref(self, start: int) -> tree.Expression:
        operand = self._unary()
        if isinstance(operand, tree.AddressOf):
            return operand.operand
        return tree.Deref(start, self.end, operand)

    def _step(
        self, start: int, operator: str, target: tree.Expression, *, is_prefix: bool
    ) -> tree.Step:
        if not isinstance(target, tree.Variable | tree.Map):
            message = f"The {operator} operator must be applied to a map or variable"
            raise ScriptError(message, start, self.end)
        return tree.Step(start, self.end, 1 if operator == "++" else -1, is_prefix, target)

    def _cast(self) -> tree.Cast | None:
        """Read `(type)x`, or nothing if this is not a cast."""
        begin = self.token
        self.take()
        to = self._type_in_brackets()
        if to is None:
            self.seek(begin.start)
            return None
        operand = self._unary()
        return tree.Cast(begin.start, self.end, to, operand)

    def _type_in_brackets(self) -> tree.TypeName | None:
        if self.token.kind != "name":
            return None
        is_certain = self.token.text in (*_TAGS, *_C_WORDS) or _TYPES.match(self.token.text)
        try:
            to = self.type_name()
        except ScriptError:
            return None
        if not self.accept(")"):
            return None
        begins_operand = self.token.kind in ("name", "variable", "map", "number", "parameter")
        if is_certain or -1 in to.suffixes or begins_operand or self.is_next("("):
            return to
        return None

    def type_name(self) -> tree.TypeName:
        """Read a type such as `struct task_struct *`, `uint8[4]`, `string[64]`.

        Raises:
            ScriptError: a syntax error.
        """
        start = self.token.start
        word = self.expect_kind("name").text
        while word == "const":
            word = self.expect_kind("name").text
        if word == "typeof" and self.is_next("("):
            return self._type_of(start)
        if word in _TAGS:
            word = f"{word} {self.expect_kind('name').text}"
        elif word in _C_WORDS:
            words = [word]
            while self.token.text in _C_WORDS:
                words.append(self.take().text)
            word = " ".join(words)
        return tree.TypeName(start, self.end, word, self._suffixes())

    def _suffixes(self) -> tuple[int, ...]:
        suffixes: list[int] = []
        while True:
            if self.accept("*"):
                suffixes.append(-1)
            elif self.is_next("["):
                suffixes.append(self._length())
            else:
                return tuple(suffixes)

    def _type_of(self, start: int) -> tree.TypeName:
        """Read the brackets of `typeof()`, and the suffixes behind them."""
        self.expect("(")
        inner = self._type_or_value()
        self.expect(")")
        suffixes = self._suffixes()
        if isinstance(inner, tree.TypeName):
            both = (*inner.suffixes, *suffixes)
            return tree.TypeName(start, self.end, inner.name, both, inner.of)
        return tree.TypeName(start, self.end, "", suffixes, inner)

    def _type_or_value(self) -> tree.TypeName | tree.Expression:
        if self.token.kind != "name":
            return self.expression()
        at = self.token.start
        target = self.type_name()
        if self.is_next(")", ","):
            return target
        self.seek(at)
        return self.expression()

    def _length(self) -> int:
        self.expect("[")
        count = 0 if self.is_next("]") else self.expect_kind("number").number
        self.expect("]")
        return count

    def _postfix(self, base: tree.Expression) -> tree.Expression:
        while True:
            start = base.start
            if self.is_next(".", "->"):
                is_dot = self.take().text == "."
                base = self._member(base, start, is_dot=is_dot)
            elif self.is_next("["):
                self.take()
                index = self._items("]")
                if len(index) != 1:
                    raise ScriptError("an index is one expression", start, self.end)
                base = tree.Index(start, self.end, base, index[0])
            elif self.is_next("++", "--"):
                operator = self.take().text
                base = self._step(start, operator, base, is_prefix=False)
            else:
                return base

    def _member(self, base: tree.Expression, start: int, *, is_dot: bool) -> tree.Expression:
        if self.token.kind == "number" and is_dot:
            number = self.take()
            index = tree.Integer(number.start, number.end, number.number)
            return tree.Index(start, self.end, base, index)
        name = self.expect_kind("name").text
        return tree.Field(start, self.end, base, name)

    def _items(self, close: str) -> list[tree.Expression]:
        items: list[tree.Expression] = []
        saved, self._in_predicate = self._in_predicate, False
        while not self.is_next(close):
            items.append(self.expression())
            if not self.accept(","):
                break
        self._in_predicate = saved
        self.expect(close)
        return items

    def _primary(self) -> tree.Expression:
        token = self.token
        match token.kind:
            case "number":
                self.take()
                return tree.Integer(token.start, token.end, token.number)
            case "string":
                return self._string()
            case "variable":
                self.take()
                return tree.Variable(token.start, token.end, token.text)
            case "parameter":
                self.take()
                number = -1 if token.text == "$#" else int(token.text[1:])
                return tree.Parameter(token.start, token.end, number)
            case "map":
                return self._map()
            case "name":
                return self._name()
            case _ if token.text == "(":
                return self._brackets()
            case _ if token.text == "{":
                return self.block_value()
        raise self.unexpected()

    def block_value(self) -> tree.BlockValue:
        """Read `{ statements; value }`."""
        raise NotImplementedError

    def if_value(self) -> tree.Expression:
        """Read `if test { value } else { value }`."""
        raise NotImplementedError

    def _string(self) -> tree.String:
        first = self.take()
        text = first.string
        while self.token.kind == "string":
            text += self.take().string
        return tree.String(first.start, self.end, text)

    def _map(self) -> tree.Map:
        token = self.take()
        key: tree.Expression | None = None
        if self.is_next("["):
            begin = self.take().start
            items = self._items("]")
            if not items:
                raise ScriptError("a key is missing", begin, self.end)
            key = items[0] if len(items) == 1 else tree.Tuple(begin, self.end, items)
        return tree.Map(token.start, self.end, token.text, key)

    def _name(self) -> tree.Expression:
        if self.token.text == "if":
            return self.if_value()
        token = self.token
        if token.text == "typeof" and read_token(self.text, token.end).text == "(":
            target = self.type_name()
            return tree.TypeArgument(token.start, self.end, target)
        self.take()
        name = token.text.removeprefix("__builtin_")
        if token.text in ("true", "false"):
            return tree.Bool(token.start, token.end, token.text == "true")
        if token.text in ("sizeof", "offsetof") and self.is_next("("):
            return self._size(token.start, token.text)
        if self.accept("("):
            arguments = self._items(")")
            return tree.Call(token.start, self.end, name, arguments)
        return tree.Name(token.start, token.end, name)

    def _size(self, start: int, word: str) -> tree.Expression:
        self.expect("(")
        target = self._type_or_value()
        if word == "sizeof":
            self.expect(")")
            return tree.SizeOf(start, self.end, target)
        if not isinstance(target, tree.TypeName):
            raise ScriptError("offsetof() needs the name of a type", target.start, target.end)
        self.expect(",")
        path = [self.expect_kind("name").text]
        while self.accept("."):
            path.append(self.expect_kind("name").text)
        self.expect(")")
        return tree.OffsetOf(start, self.end, target, path)

    def _brackets(self) -> tree.Expression:
        begin = self.take().start
        saved, self._in_predicate = self._in_predicate, False
        made = self._in_brackets(begin)
        self._in_predicate = saved
        return made

    def _in_brackets(self, begin: int) -> tree.Expression:
        if self.accept(")"):
            return tree.Tuple(begin, self.end, [])
        if self.token.kind == "name" and read_token(self.text, self.token.end).text == "=":
            return self._record(begin)
        first = self.expression()
        if not self.is_next(","):
            self.expect(")")
            return first
        items = [first]
        while self.accept(",") and not self.is_next(")"):
            items.append(self.expression())
        self.expect(")")
        return tree.Tuple(begin, self.end, items)

    def _record(self, begin: int) -> tree.Record:
        names: list[str] = []
        items: list[tree.Expression] = []
        while not self.is_next(")"):
            names.append(self.expect_kind("name").text)
            self.expect("=")
            items.append(self.expression())
            if not self.accept(","):
                break
        self.expect(")")
        return tree.Record(begin, self.end, names, items)
