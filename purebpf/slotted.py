"""`Slotted`: classes with slots and a constructor, made in a tenth of the time of `dataclasses`.

For the many small classes of a tree that a start imports. The import of `dataclasses` alone takes
10 ms, and it compiles the constructor of each class; here the constructors of as many fields are
one code, with the names put in. Type checkers see data classes, and hold `frozen=True`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__all__ = ["Slotted", "field"]

if TYPE_CHECKING:
    from dataclasses import field
    from typing import ClassVar, dataclass_transform

    @dataclass_transform(eq_default=False, field_specifiers=(field,))
    class Slotted:
        """A slot for each annotation; objects are equal if they are one, unless a class differs."""

        _fields: ClassVar[tuple[str, ...]]

        def __init_subclass__(cls, *, frozen: bool = False) -> None: ...

else:
    from types import FunctionType

    class _Fixed:
        """The default of a field that the constructor does not take."""

        __slots__ = ("make", "value")

        def __init__(self, value: Any, make: Any) -> None:
            self.value = value
            self.make = make

    def field(*, default: Any = None, default_factory: Any = None, init: bool = True) -> Any:
        """Describe a field: one with `init=False` or a factory is not of the constructor."""
        if init and default_factory is None:
            return default
        return _Fixed(default, default_factory)

    _codes: dict[tuple[int, int, int], Any] = {}

    def _code(given: int, fixed: int, made: int) -> Any:
        """The code of constructors with so many fields; its names stand for others."""
        if (found := _codes.get((given, fixed, made))) is None:
            names = [f"g{index}" for index in range(given)]
            lines = [f"self.{name} = {name}" for name in names]
            lines += [f"self.f{index} = vf{index}" for index in range(fixed)]
            lines += [f"self.m{index} = vm{index}()" for index in range(made)]
            body = "; ".join(lines or ["pass"])
            space: dict[str, Any] = {}
            exec(f"def __init__(self, {', '.join(names)}): {body}", space)  # noqa: S102 - of numbers
            found = _codes[given, fixed, made] = space["__init__"].__code__
        return found

    def _constructor(name: str, given: dict[str, Any], fixed: dict[str, _Fixed]) -> Any:
        """A constructor that takes the given fields, and sets the fixed ones, too."""
        values = {key: how.value for key, how in fixed.items() if how.make is None}
        makers = {key: how.make for key, how in fixed.items() if how.make is not None}
        code = _code(len(given), len(values), len(makers))
        names = {f"g{index}": key for index, key in enumerate(given)}
        names |= {f"f{index}": key for index, key in enumerate(values)}
        names |= {f"m{index}": key for index, key in enumerate(makers)}
        code = code.replace(
            co_varnames=("self", *given),
            co_names=tuple([names.get(word, word) for word in code.co_names]),
        )
        known = {f"vf{index}": value for index, value in enumerate(values.values())}
        known |= {f"vm{index}": make for index, make in enumerate(makers.values())}
        defaults = tuple([value for value in given.values() if value is not _REQUIRED])
        made = FunctionType(code, known, "__init__", defaults)
        made.__qualname__ = f"{name}.__init__"
        return made

    _REQUIRED = _Fixed(None, None)

    class _Maker(type):
        def __new__(
            cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **_: Any
        ) -> type:
            own = {
                key: namespace.pop(key, _REQUIRED) for key in namespace.get("__annotations__", ())
            }
            known = {key: how for base in bases for key, how in base.__dict__["_defaults"].items()}
            known |= own
            given = {
                key: how
                for key, how in known.items()
                if how is _REQUIRED or not isinstance(how, _Fixed)
            }
            fixed = {key: how for key, how in known.items() if key not in given}
            members = {
                "__slots__": tuple(own),
                "__match_args__": tuple(given),
                "_fields": tuple(known),
                "_defaults": known,
                "__init__": _constructor(name, given, fixed),
            }
            return super().__new__(cls, name, bases, members | namespace)

    class Slotted(metaclass=_Maker):
        """A slot for each annotation; objects are equal if they are one, unless a class differs."""

        def __repr__(self) -> str:
            values = [f"{name}={getattr(self, name)!r}" for name in self._fields]
            return f"{type(self).__name__}({', '.join(values)})"
