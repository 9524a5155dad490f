"""`NamedTuple` with the interface of typing's, made in a fifth of the time.

For modules that a start imports: the ones before a command is attached define 70 such classes.
typing compiles each annotation and compares it with the forbidden forms; collections compiles each
constructor. Here the constructors of as many fields are one code, with the names put in. Type
checkers look at the annotations anyway, and take this for typing's own.
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
    from collections import namedtuple
    from types import FunctionType

    def _make_like(count: int) -> Any:
        """Return a named tuple of as many fields, which others get if their names do not matter."""
        return namedtuple("_like", [f"f{index}" for index in range(count)])  # noqa: PYI024

    _like = _make_like(24)
    _getters = [_like.__dict__[field] for field in _like._fields]
    _codes: dict[int, Any] = {}
    _names: dict[str, Any] = {"_new": tuple.__new__, "__builtins__": {}}

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

    _SHARED = {
        "__slots__": (),
        "_make": classmethod(_make),
        "_replace": _replace,
        "__repr__": _describe,
        "_asdict": _like._asdict,
        "__getnewargs__": _like.__getnewargs__,
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
        if len(fields) > len(_getters):
            like = _make_like(len(fields))
            _getters[:] = [like.__dict__[field] for field in like._fields]
        return members | dict(zip(fields, _getters, strict=False))

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
