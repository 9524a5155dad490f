"""`NamedTuple`: that of typing, made in less than half of the time.

For modules that a start imports: those before a command is attached make 70 such classes. typing
compiles each annotation and compares it with what an annotation may not be, which takes longer than
all the rest. Type checkers look at the annotations anyway, and take this for typing's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__all__ = ["NamedTuple"]

if TYPE_CHECKING:
    from typing import NamedTuple
else:
    from collections import namedtuple

    class _Maker(type):
        def __new__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> type:
            if not bases:
                return super().__new__(cls, name, bases, namespace)
            fields = namespace["__annotations__"]
            defaults = [namespace[field] for field in fields if field in namespace]
            module = namespace["__module__"]
            made = namedtuple(name, fields, defaults=defaults, module=module)  # noqa: PYI024
            made.__new__.__annotations__ = fields
            for key, value in namespace.items():
                if key not in fields:
                    setattr(made, key, value)
            return made

    class NamedTuple(metaclass=_Maker):
        """As typing.NamedTuple; not together with Generic."""
