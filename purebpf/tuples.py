"""`NamedTuple` with the interface of typing's, made in a fifth of the time.

For modules that a start imports: the ones before a command is attached define 70 such classes.
typing compiles each annotation and compares it with the forbidden forms; collections compiles each
constructor. Here the constructors of as many fields are one code, with the names put in, and few
are compiled by a start: the bytecode file has the others. Type checkers look at the annotations
anyway, and take this for typing's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__all__ = ["NamedTuple", "Options"]

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import ClassVar, NamedTuple, Self, dataclass_transform

    @dataclass_transform(kw_only_default=True, frozen_default=True)
    class Options:
        """A named tuple that has the fields of its base classes behind its own.

        Programs name the fields: `ProfileOptions(pids=(185,), frequency=99)`.
        """

        _fields: ClassVar[tuple[str, ...]]
        _field_defaults: ClassVar[Mapping[str, Any]]

        def _replace(self, **values: Any) -> Self:
            """Return the same options, with other values for some fields."""
            raise NotImplementedError

        def _asdict(self) -> dict[str, Any]:
            """Return the values by name."""
            raise NotImplementedError

else:
    import sys
    from collections import _tuplegetter
    from types import FunctionType

    _new = tuple.__new__
    # fmt: off
    _CONSTRUCTORS = (
        lambda _cls: _new(_cls, ()),
        lambda _cls, a: _new(_cls, (a,)),
        lambda _cls, a, b: _new(_cls, (a, b)),
        lambda _cls, a, b, c: _new(_cls, (a, b, c)),
        lambda _cls, a, b, c, d: _new(_cls, (a, b, c, d)),
        lambda _cls, a, b, c, d, e: _new(_cls, (a, b, c, d, e)),
        lambda _cls, a, b, c, d, e, f: _new(_cls, (a, b, c, d, e, f)),
        lambda _cls, a, b, c, d, e, f, g: _new(_cls, (a, b, c, d, e, f, g)),
        lambda _cls, a, b, c, d, e, f, g, h: _new(_cls, (a, b, c, d, e, f, g, h)),
        lambda _cls, a, b, c, d, e, f, g, h, i: _new(_cls, (a, b, c, d, e, f, g, h, i)),
        lambda _cls, a, b, c, d, e, f, g, h, i, j: _new(_cls, (a, b, c, d, e, f, g, h, i, j)),
        lambda _cls, a, b, c, d, e, f, g, h, i, j, k: _new(_cls, (a, b, c, d, e, f, g, h, i, j, k)),
        lambda _cls, a, b, c, d, e, f, g, h, i, j, k, m:
            _new(_cls, (a, b, c, d, e, f, g, h, i, j, k, m)),
        lambda _cls, a, b, c, d, e, f, g, h, i, j, k, m, n:
            _new(_cls, (a, b, c, d, e, f, g, h, i, j, k, m, n)),
        lambda _cls, a, b, c, d, e, f, g, h, i, j, k, m, n, p:
            _new(_cls, (a, b, c, d, e, f, g, h, i, j, k, m, n, p)),
        lambda _cls, a, b, c, d, e, f, g, h, i, j, k, m, n, p, q:
            _new(_cls, (a, b, c, d, e, f, g, h, i, j, k, m, n, p, q)),
        lambda _cls, a, b, c, d, e, f, g, h, i, j, k, m, n, p, q, r:
            _new(_cls, (a, b, c, d, e, f, g, h, i, j, k, m, n, p, q, r)),
    )
    # fmt: on
    _codes: dict[int, Any] = {count: made.__code__ for count, made in enumerate(_CONSTRUCTORS)}
    _names: dict[str, Any] = {"_new": _new, "__builtins__": {}}
    _getters: list[Any] = []

    def _getters_of(count: int) -> list[Any]:
        """The properties of as many fields: classes share them."""
        missing = range(len(_getters), count)
        _getters.extend(_tuplegetter(index, f"Alias for field number {index}") for index in missing)
        return _getters

    def _make(cls: Any, values: Any) -> Any:
        """A tuple of as many values as there are fields."""
        made = tuple.__new__(cls, values)
        if len(made) != len(cls._fields):
            raise TypeError(f"Expected {len(cls._fields)} arguments, got {len(made)}")
        return made

    def _replace(self: Any, /, **values: Any) -> Any:
        """The same with other values for some fields."""
        made = tuple.__new__(type(self), map(values.pop, self._fields, self))
        if values:
            error = TypeError if sys.version_info >= (3, 13) else ValueError
            raise error(f"Got unexpected field names: {list(values)!r}")
        return made

    def _describe(self: Any) -> str:
        """As it is written: Name(field=value, ...)."""
        values = [f"{field}={value!r}" for field, value in zip(self._fields, self, strict=True)]
        return f"{type(self).__name__}({', '.join(values)})"

    def _asdict(self: Any) -> dict[str, Any]:
        """The values by name."""
        return dict(zip(self._fields, self, strict=True))

    def _getnewargs(self: Any) -> Any:
        """The values, for copy and pickle."""
        return tuple(self)

    _SHARED = {
        "__slots__": (),
        "_make": classmethod(_make),
        "_replace": _replace,
        "__repr__": _describe,
        "_asdict": _asdict,
        "__getnewargs__": _getnewargs,
    }
    if sys.version_info >= (3, 13):
        _SHARED["__replace__"] = _replace

    def _constructor(name: str, fields: tuple[str, ...], defaults: tuple[Any, ...]) -> Any:
        count = len(fields)
        if count not in _codes:
            values = "".join([f"f{index}," for index in range(count)])
            source = f"lambda _cls,{values}: _new(_cls, ({values}))"
            _codes[count] = eval(source, _names).__code__  # noqa: S307 - of numbers alone
        code = _codes[count].replace(co_varnames=("_cls", *fields), co_name="__new__")
        made = FunctionType(code, _names, "__new__", defaults)
        made.__qualname__ = f"{name}.__new__"
        return made

    class _Maker(type):
        def __new__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> type:
            if not bases:
                return super().__new__(cls, name, bases, namespace)
            annotations = namespace["__annotations__"]
            defaults = {field: namespace.pop(field) for field in annotations if field in namespace}
            members = _members(name, annotations, defaults) | namespace
            return type(name, (tuple, *bases[1:]), members)

    def _members(name: str, annotations: Any, defaults: Any) -> dict[str, Any]:
        """The members of a named tuple with these fields."""
        fields = tuple(annotations)
        members = {
            **_SHARED,
            "__doc__": f"{name}({', '.join(fields)})",
            "__match_args__": fields,
            "_fields": fields,
            "_field_defaults": defaults,
            "__new__": _constructor(name, fields, tuple(defaults.values())),
        }
        members["__new__"].__annotations__ = annotations
        return members | dict(zip(fields, _getters_of(len(fields)), strict=False))

    class NamedTuple(metaclass=_Maker):
        """As typing.NamedTuple, also together with Generic, which comes second."""

    class _Joiner(type):
        """Makes a named tuple of the fields of a class and of its base classes."""

        def __new__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> type:
            annotations = dict(namespace.get("__annotations__", ()))
            defaults = {field: namespace.pop(field) for field in annotations if field in namespace}
            for base in bases:
                annotations = {**annotations, **base.__dict__.get("_annotations", {})}
                defaults = {**base.__dict__.get("_field_defaults", {}), **defaults}
            required = [field for field in annotations if field not in defaults]
            defaults = {field: defaults[field] for field in annotations if field in defaults}
            annotations = {field: annotations[field] for field in (*required, *defaults)}
            namespace["_annotations"] = annotations
            members = _members(name, annotations, defaults)
            return super().__new__(cls, name, bases, members | namespace)

    class Options(tuple, metaclass=_Joiner):
        """A named tuple that has the fields of its base classes, too."""

        __slots__ = ()
