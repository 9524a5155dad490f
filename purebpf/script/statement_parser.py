"""Statements and blocks."""

from __future__ import annotations

from purebpf.script import tree
from purebpf.script.expression_parser import ExpressionParser
from purebpf.script.script_error import ScriptError
from purebpf.script.tokens import read_token

__all__ = ["StatementParser"]

_ASSIGNMENTS = frozenset({"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="})
_DEEPEST_BLOCK = 60


class StatementParser(ExpressionParser):
    """Reads the statements of action blocks."""

    _blocks = 0
    _is_ended = True

    def block(self) -> tree.Block:
        """Read `{ statements }`.

        Raises:
            ScriptError: a syntax error.
        """
        start = self.expect("{").start
        self._blocks += 1
        if self._blocks > _DEEPEST_BLOCK:
            raise ScriptError("blocks are nested too deeply", start)
        statements: list[tree.Statement] = []
        has_value = False
        while not self.is_next("}"):
            if not self.accept(";"):
                statements.append(self._statement())
                has_value = not self._is_ended
        self.expect("}")
        self._blocks -= 1
        return tree.Block(start, self.end, statements, has_value)

    def _statement(self) -> tree.Statement:
        token = self.token
        if token.kind == "name":
            match token.text:
                case "if":
                    return self._if()
                case "while":
                    self.take()
                    test = self._test()
                    body = self.block()
                    return tree.While(token.start, self.end, test, body)
                case "unroll":
                    self.take()
                    count = self._test()
                    body = self.block()
                    return tree.Unroll(token.start, self.end, count, body)
                case "for":
                    return self._for()
                case "let":
                    return self._let()
                case "return" | "break" | "continue":
                    self.take()
                    value = None
                    if token.text == "return" and not self.is_next(";", "}"):
                        value = self.expression()
                    self._end_statement()
                    return tree.Jump(token.start, token.end, token.text, value)
        return self._simple()

    def _test(self) -> tree.Expression:
        self.expect("(")
        test = self.expression()
        self.expect(")")
        return test

    def _if(self) -> tree.If:
        start = self.take().start
        test = self.expression()
        yes, no = self.block(), None
        if self.accept("else"):
            no = self._else()
        return tree.If(start, self.end, test, yes, no)

    def _else(self) -> tree.Block:
        if not self.is_next("if"):
            return self.block()
        start = self.token.start
        self._blocks += 1
        if self._blocks > _DEEPEST_BLOCK:
            raise ScriptError("blocks are nested too deeply", start)
        inner = self._if()
        self._blocks -= 1
        return tree.Block(start, self.end, [inner], has_value=True)

    def _for(self) -> tree.For:
        start = self.take().start
        has_brackets = self.accept("(")
        name = self.expect_kind("variable")
        target = tree.Variable(name.start, name.end, name.text)
        self.expect(":")
        first = self._binary(9)
        source: tree.Range | tree.Map
        if isinstance(first, tree.Map) and first.key is None and not self.is_next(".."):
            source = first
        else:
            self.expect("..")
            last = self._binary(9)
            source = tree.Range(first.start, last.end, first, last)
        if has_brackets:
            self.expect(")")
        body = self.block()
        return tree.For(start, self.end, target, source, body)

    def _let(self) -> tree.Let:
        start = self.take().start
        name = self.expect_kind("variable")
        target = tree.Variable(name.start, name.end, name.text)
        declared = self.type_name() if self.accept(":") else None
        value = self.expression() if self.accept("=") else None
        end = self.end
        self._end_statement()
        return tree.Let(start, end, target, declared, value)

    def _simple(self) -> tree.Statement:
        if self.token.text == "_" and read_token(self.text, self.token.end).text == "=":
            self.take()
            self.take()
        value = self.expression()
        if self.token.text in _ASSIGNMENTS and self.token.kind == "operator":
            return self._assign(value)
        end = self.end
        self._end_statement()
        return tree.Discard(value.start, end, value)

    def _assign(self, target: tree.Expression) -> tree.Assign:
        operator = self.take().text
        if not isinstance(target, tree.Variable | tree.Map):
            raise ScriptError("only maps and variables can be assigned", target.start, target.end)
        value = self.expression()
        end = self.end
        self._end_statement()
        return tree.Assign(target.start, end, operator[:-1] or "=", target, value)

    def _end_statement(self) -> None:
        self._is_ended = self.accept(";")
        if not self._is_ended and not self.is_next("}") and self.text[self.end - 1] != "}":
            raise self.unexpected("expected ; or }")

    def block_value(self) -> tree.BlockValue:
        """Read `{ statements; value }`.

        Raises:
            ScriptError: a syntax error.
        """
        saved, self._in_predicate = self._in_predicate, False
        block = self.block()
        self._in_predicate = saved
        made = tree.BlockValue(block.start, block.end, block.statements, None)
        last = block.statements[-1] if block.statements else None
        if last is not None and block.has_value and (value := _value_of(last)) is not None:
            made.result = value
            made.statements.pop()
        self._is_ended = True
        return made

    def if_value(self) -> tree.Expression:
        """Read `if test { value } else { value }`.

        Raises:
            ScriptError: a syntax error.
        """
        start = self.take().start
        test = self.expression()
        yes = self.block_value()
        self.expect("else")
        no = self.if_value() if self.is_next("if") else self.block_value()
        return tree.Ternary(start, self.end, test, yes, no)


def _value_of(last: tree.Statement) -> tree.Expression | None:
    """Return the value of a block's last statement; None if it has none."""
    if isinstance(last, tree.Discard):
        return last.value
    if not isinstance(last, tree.If) or last.no is None:
        return None
    yes, no = _block_value(last.yes), _block_value(last.no)
    if yes is None or no is None:
        return None
    return tree.Ternary(last.start, last.end, last.test, yes, no)


def _block_value(block: tree.Block) -> tree.BlockValue | None:
    if not block.has_value or not block.statements:
        return None
    value = _value_of(block.statements[-1])
    if value is None:
        return None
    return tree.BlockValue(block.start, block.end, block.statements[:-1], value)
