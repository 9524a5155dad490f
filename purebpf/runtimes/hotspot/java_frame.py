"""A frame of a Java stack, without the readers of a JVM, which only a JVM needs."""

from __future__ import annotations

from purebpf.tuples import NamedTuple

__all__ = ["JavaFrame"]


class JavaFrame(NamedTuple):
    """A call of a Java method, or of a piece of generated code that is none.

    Attributes:
        name: "com.acme.Api.handle", or the name of the piece of code.
        file: "Api.java", "Native Method"; "" if it is not known.
        line: 0 if it is not known.
        is_method: False for stubs and adapters.
        is_inlined: whether its caller's code holds it.
    """

    name: str
    file: str
    line: int
    is_method: bool
    is_inlined: bool = False
