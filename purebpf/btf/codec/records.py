"""Records: tuples with named fields, made for each struct of a BTF.

Like `typing.NamedTuple`, without its demands on names: C has fields called `_state` and `from`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import repeat
from operator import itemgetter
from typing import Any, ClassVar, Self, TypeVar
from weakref import WeakValueDictionary

from purebpf.btf.types.names import legal_names, printable

_T = TypeVar("_T", bound=tuple[Any, ...])

_KEPT_CLASSES = 1024


class Record(tuple[Any, ...]):
    """A struct's fields by position and by name. Hashable, and equal to a tuple of the same.

    A field that is not given is None; to encode, a field may be None only where C has a union
    and another of its members is given.
    """

    __slots__ = ()
    _fields: ClassVar[tuple[str, ...]] = ()

    def __new__(cls, /, *values: Any, **named: Any) -> Self:
        """Fields by position, then by name."""
        if len(values) > len(cls._fields):
            raise TypeError(f"{cls.__name__} has {len(cls._fields)} fields, got {len(values)}")
        rest = [named.pop(field, None) for field in cls._fields[len(values) :]]
        if named:
            raise TypeError(f"{cls.__name__} does not take {', '.join(map(repr, named))} (again)")
        return tuple.__new__(cls, (*values, *rest))

    def __repr__(self) -> str:
        fields = zip(self._fields, self, strict=True)
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in fields)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (type(self).__name__, self._fields, tuple(self))

    def _asdict(self) -> dict[str, Any]:
        """The fields as a dict, as NamedTuple has it."""
        return dict(zip(self._fields, self, strict=True))

    def _replace(self, /, **named: Any) -> Self:
        """A copy with some fields changed, as NamedTuple has it."""
        return type(self)(**{**self._asdict(), **named})


_TAKEN = frozenset(name for name in dir(Record) if name.startswith("_"))


def record_class(name: str, c_names: Sequence[str]) -> type[Record]:
    """A Record class called `name` with a field for each C name."""
    return _with_fields(printable(name), tuple(legal_names(c_names, _TAKEN)))


_classes: WeakValueDictionary[tuple[str, tuple[str, ...]], type[Record]] = WeakValueDictionary()
"""Every class that is in use: records of the same kind have the same class, copies too."""


@lru_cache(_KEPT_CLASSES)
def _with_fields(name: str, fields: tuple[str, ...]) -> type[Record]:
    """The same class again, for the records of another BTF and for those that were pickled.

    The last ones that were asked for stay, also when nothing uses them between two records.
    """
    if (known := _classes.get((name, fields))) is not None:
        return known
    body: dict[str, Any] = {"__slots__": (), "_fields": fields, "__module__": "btf"}
    for index, field in enumerate(fields):
        body[field] = property(itemgetter(index))
    _classes[name, fields] = made = type(name, (Record,), body)
    return made


def _rebuilt(name: str, fields: tuple[str, ...], values: tuple[Any, ...]) -> Record:
    return tuple.__new__(_with_fields(name, fields), values)


def maker(made: type[Record]) -> partial[Record]:
    """What makes a record of a sequence of all its fields, fast."""
    return partial(tuple.__new__, made)


def instances(made: type[_T], rows: Iterable[Sequence[Any]]) -> Iterator[_T]:
    """Records of many sequences; takes a third less time than `maker`'s."""
    return map(tuple.__new__, repeat(made), rows)
