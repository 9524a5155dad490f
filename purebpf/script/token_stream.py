"""A script's text, read token by token."""

from __future__ import annotations

from purebpf.script.script_error import ScriptError
from purebpf.script.tokens import Token, read_token

__all__ = ["TokenStream"]


class TokenStream:
    """The next token of a text, and the place behind the last one that was taken.

    Attributes:
        text: the whole script.
        token: the next token.
        end: the place behind the token that was taken last.
    """

    def __init__(self, text: str, position: int = 0) -> None:
        self.text, self.end = text, position
        self.token = read_token(text, position)

    def seek(self, position: int) -> None:
        """Continue at another place."""
        self.end = position
        self.token = read_token(self.text, position)

    def take(self) -> Token:
        """Return the next token, and go behind it."""
        token = self.token
        self.end = token.end
        self.token = read_token(self.text, token.end)
        return token

    def is_next(self, *texts: str) -> bool:
        """Return True if the next token is one of these operators or words."""
        return self.token.text in texts and self.token.kind in ("operator", "name")

    def accept(self, text: str) -> bool:
        """Take the next token if it is this one."""
        if self.is_next(text):
            self.take()
            return True
        return False

    def expect(self, text: str) -> Token:
        """Take the next token, which must be this one.

        Raises:
            ScriptError: it is another one.
        """
        if not self.is_next(text):
            raise self.unexpected(f"expected {text!r}")
        return self.take()

    def expect_kind(self, kind: str) -> Token:
        """Take the next token, which must be of this kind.

        Raises:
            ScriptError: it is of another kind.
        """
        if self.token.kind != kind:
            raise self.unexpected(f"expected a {kind}")
        return self.take()

    def unexpected(self, wanted: str = "") -> ScriptError:
        """Describe the next token as a syntax error."""
        token = self.token
        text = "end of file" if token.kind == "end" else token.text
        more = f", {wanted}" if wanted else ""
        return ScriptError(f"syntax error, unexpected {text}{more}", token.start, token.end)
