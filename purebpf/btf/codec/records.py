"""Records: tuples with named fields, made for each struct of a BTF.

Like `typing.NamedTuple`, without its demands on names: C has fields called `_state` and `from`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import repeat, starmap
from operator import itemgetter
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar, cast
from weakref import WeakValueDictionary

from purebpf.btf.types.names import legal_names, printable

_T = TypeVar("_T", bound=tuple[Any, ...])

_KEPT_CLASSES = 1024


class _RecordType(type):
    """The metaclass that gives records the arguments of `Record(...)`.

    A class with its own `__new__` has no quick way to `tuple`'s, which `maker` calls.
    """

    if not TYPE_CHECKING:  # `Record.__new__` says it to type checkers

        def __call__(cls, /, *values: Any, **named: Any) -> Any:
            if len(values) > len(cls._fields):
                raise TypeError(f"{cls.__name__} has {len(cls._fields)} fields, got {len(values)}")
            rest = [named.pop(field, None) for field in cls._fields[len(values) :]]
            if named:
                names = ", ".join(map(repr, named))
                raise TypeError(f"{cls.__name__} does not take {names} (again)")
            return tuple.__new__(cls, (*values, *rest))


class Record(tuple[Any, ...], metaclass=_RecordType):
    """A struct's fields by position and by name. Hashable, and equal to a tuple of the same.

    A missing field is None; to encode, a field may be None only where C has a union and another of
    its members is present.
    """

    __slots__ = ()
    _fields: ClassVar[tuple[str, ...]] = ()

    if TYPE_CHECKING:

        def __new__(cls, /, *values: Any, **named: Any) -> Self:
            """Fields by position, then by name."""

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

    The most recent classes stay, even if nothing uses them between two records.
    """
    if (known := _classes.get((name, fields))) is not None:
        return known
    body: dict[str, Any] = {"__slots__": (), "_fields": fields, "__module__": "btf"}
    for index, field in enumerate(fields):
        body[field] = property(itemgetter(index))
    _classes[name, fields] = made = cast("type[Record]", _RecordType(name, (Record,), body))
    return made


def _rebuilt(name: str, fields: tuple[str, ...], values: tuple[Any, ...]) -> Record:
    return tuple.__new__(_with_fields(name, fields), values)


def maker(made: type[_T]) -> Callable[[Iterable[Any]], _T]:
    """Return a fast function that makes a record of a sequence of all its fields."""
    make: Callable[[Iterable[Any]], _T] = type.__call__.__get__(made)
    return make


def instances(made: type[_T], rows: Iterable[Sequence[Any]]) -> Iterator[_T]:
    """Records of many sequences, or instances of another class that adds nothing to a tuple.

    `zip` uses its tuple again, so that a call costs none: a quarter less time than `map` takes.
    """
    metaclass: type = type(made)
    if metaclass is not _RecordType:
        return starmap(tuple.__new__, zip(repeat(made), rows, strict=False))
    make: Callable[..., _T] = maker(made)
    return starmap(make, zip(rows, strict=False))
