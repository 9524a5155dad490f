"""`parse`: the text of a script as a tree."""

from __future__ import annotations

import re

from purebpf.script import tree
from purebpf.script.script_error import ScriptError
from purebpf.script.statement_parser import StatementParser
from purebpf.script.tokens import read_token, skip_space

__all__ = ["parse"]

_TAGS = ("struct", "union", "enum", "typedef")
_LATER = {
    "fn": "functions of a script are not supported yet",
    "import": "import is not supported yet",
}
_PATH_KINDS = frozenset({"uprobe", "u", "uretprobe", "ur", "usdt", "U"})


def parse(text: str) -> tree.Script:
    """Read a script.

    Raises:
        ScriptError: a syntax error, or a part of the language that is not supported.
    """
    try:
        return _FileParser(text).script()
    except RecursionError:
        raise ScriptError("the script is nested too deeply") from None


class _FileParser(StatementParser):
    def script(self) -> tree.Script:
        """Read the whole file."""
        made = tree.Script(0, len(self.text), [], [], [], [], [])
        if self.text.startswith("#!"):
            newline = self.text.find("\n")
            self.seek(newline if newline >= 0 else len(self.text))
        while self.token.kind != "end":
            self._part(made)
        if not made.probes:
            raise ScriptError("No probes to attach", len(self.text))
        return made

    def _part(self, made: tree.Script) -> None:
        token = self.token
        following = read_token(self.text, token.end).text
        if token.text == "#":
            self._directive(made)
        elif token.text in _TAGS:
            self._declaration(made)
        elif token.text == "config" and following == "=":
            self._config(made)
        elif token.text == "let":
            self._map_declaration(made)
        elif token.text == "macro":
            made.macros.append(self._macro())
        elif token.text in _LATER and following not in (":", "{", "/"):
            raise ScriptError(_LATER[token.text], token.start, token.end)
        elif token.text == ";":
            self.take()
        else:
            made.probes.append(self._probe())

    def _directive(self, made: tree.Script) -> None:
        """Keep a `#` line, with the lines that a backslash continues."""
        start = self.token.start
        match = re.compile(r"(?:\\\n|[^\n])*").match(self.text, start)
        end = match.end() if match else len(self.text)
        made.c_text.append((start, self.text[start:end]))
        self.seek(end)

    def _declaration(self, made: tree.Script) -> None:
        start, depth = self.token.start, 0
        while True:
            token = self.take()
            depth += {"{": 1, "}": -1}.get(token.text, 0)
            if token.kind == "end" or depth < 0:
                raise ScriptError("the C declaration does not end", start, token.end)
            if depth == 0 and token.text == ";":
                break
            if (
                depth == 0
                and token.text == "}"
                and self.text[start:].startswith(("str", "un", "en"))
            ):
                self._skip_attributes()
                self.accept(";")
                break
        made.c_text.append((start, self.text[start : self.end]))

    def _skip_attributes(self) -> None:
        """Read `__attribute__((packed))` and the like behind a structure."""
        while self.token.text.startswith("__attribute"):
            self.take()
            depth = 0
            while self.token.kind != "end":
                depth += {"(": 1, ")": -1}.get(self.take().text, 0)
                if depth == 0:
                    break

    def _config(self, made: tree.Script) -> None:
        self.take()
        self.expect("=")
        self.expect("{")
        while not self.accept("}"):
            if self.accept(";"):
                continue
            start = self.token.start
            name = self.expect_kind("name").text
            self.expect("=")
            token = self.take()
            value = token.string if token.kind == "string" else token.text
            made.config.append(tree.Config(start, self.end, name, value))
            if not self.is_next("}"):
                self.expect(";")

    def _map_declaration(self, made: tree.Script) -> None:
        start = self.take().start
        name = self.expect_kind("map").text
        self.expect("=")
        kind = self.expect_kind("name").text
        self.expect("(")
        entries = self.expect_kind("number").number
        self.expect(")")
        made.maps.append(tree.MapDeclaration(start, self.end, name, kind, entries))
        self.expect(";")

    def _macro(self) -> tree.Macro:
        start = self.take().start
        name = self.expect_kind("name").text
        self.expect("(")
        parameters: list[str] = []
        while not self.is_next(")"):
            if self.token.kind not in ("name", "variable", "map"):
                raise self.unexpected("expected a parameter")
            parameters.append(self.take().text)
            if not self.accept(","):
                break
        self.expect(")")
        body = self.block_value()
        return tree.Macro(start, self.end, name, parameters, body)

    def _probe(self) -> tree.Probe:
        start = self.token.start
        points: list[tree.Point] = []
        while True:
            points.append(self._point())
            if not self.accept(",") or self.is_next("{", "/"):
                break
        predicate = None
        if self.accept("/"):
            self._in_predicate = True
            predicate = self.expression()
            self._in_predicate = False
            self.expect("/")
        body = self.block()
        return tree.Probe(start, self.end, points, predicate, body)

    def _point(self) -> tree.Point:
        """Read an attach point: all up to `{`, a comma, or the `/` of a predicate."""
        text = self.text
        place = start = skip_space(text, self.token.start)
        quoted = False
        while place < len(text):
            char = text[place]
            if char == '"':
                quoted = not quoted
            elif not quoted and (char in "{,;}\n" or self._is_predicate(start, place)):
                if char != "\n" or text[start:place].rstrip()[-1:] != ":":
                    break
            elif not quoted and text.startswith(("//", "/*"), place) and text[place - 1].isspace():
                break
            place += 1
        name = text[start:place].strip()
        self.seek(place)
        if not name or not self.is_next("{", ",", "/"):
            raise self.unexpected()
        return tree.Point(start, start + len(name), name)

    def _is_predicate(self, start: int, place: int) -> bool:
        if self.text[place] != "/" or self.text.startswith(("//", "/*"), place):
            return False
        point = self.text[start:place]
        kind, colon, rest = point.partition(":")
        if point.rstrip().endswith(":"):
            return False
        if kind.strip() in _PATH_KINDS and colon and ":" not in rest:
            return point[-1:].isspace()
        return True
