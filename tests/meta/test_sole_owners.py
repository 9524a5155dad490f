"""Classes that own a descriptor, a mapping or a process refuse copies, which close twice."""

from __future__ import annotations

import ast
import copy
import dataclasses
import importlib
import inspect
import pickle
import pkgutil
from abc import ABC
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import purebpf
from purebpf.closable import Closing, SoleOwner

_EXTRAS = {"chdb", "py4j", "obstore", "fsspec", "duckdb", "clickhouse_connect", "pyspark", "trio"}
"""Optional dependencies: the modules that need them are left out where they are missing."""

_OWN_NOTHING = {
    "purebpf.syscall.deadline.Deadline": "a timer of the process, no descriptor",
    "purebpf.symbols.budget.Work": "a count",
    "purebpf.services.fleet.stores.bucket_files.ObjectFile": "places in an object of a store",
    "purebpf.observe.symbols.download._Redirects": "a handler of urllib, whose close does nothing",
    "purebpf.http.server._Writer": "a stream of io, which refuses copies itself",
}


def _modules() -> Iterator[Any]:
    for module in pkgutil.walk_packages(purebpf.__path__, "purebpf."):
        if "__main__" in module.name or "__pyinstaller" in module.name:
            continue
        try:
            yield importlib.import_module(module.name)
        except ModuleNotFoundError as error:
            if str(error.name).partition(".")[0] not in _EXTRAS:
                raise


def _is_owner(cls: type) -> bool:
    """Return True if the class ends something: by a method, a `with` block or its collection."""
    return any(hasattr(cls, name) for name in ("close", "__exit__", "__del__"))


def _owners() -> dict[str, type]:
    classes = {
        f"{cls.__module__}.{cls.__qualname__}": cls
        for module in _modules()
        for cls in vars(module).values()
        if inspect.isclass(cls) and cls.__module__.startswith("purebpf.")
    }
    return {
        name: cls
        for name, cls in classes.items()
        if _is_owner(cls) and not getattr(cls, "_is_protocol", False)
        if name not in _OWN_NOTHING
    }


def _blank(cls: type) -> Any:
    """An instance that owns nothing yet: made without a constructor, abstract or not."""
    if issubclass(cls, ABC):
        abstract = getattr(cls, "__abstractmethods__", ())
        cls = type(cls.__name__, (cls,), dict.fromkeys(abstract))
    if issubclass(cls, tuple):
        return tuple.__new__(cls, [None] * len(cls._fields))  # type: ignore[attr-defined]
    return cls.__new__(cls, -1) if issubclass(cls, int) else cls.__new__(cls)


_COPIES = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": pickle.dumps,
    "pickle 0": lambda owner: pickle.dumps(owner, 0),
}


def test_every_class_that_closes_something_refuses_copies():
    owners = _owners()
    assert len(owners) > 60, "the walk finds owners"
    copied = [
        f"{name}: {way}"
        for name, cls in owners.items()
        for way, make in _COPIES.items()
        if not _refuses(make, _blank(cls))
    ]
    assert not copied, "give these purebpf.closable.SoleOwner as a base, or `refuse_copy`"


def _refuses(make: Any, owner: Any) -> bool:
    try:
        make(owner)
    except TypeError as error:
        return "cannot copy or pickle" in str(error)
    return False


def test_no_owner_is_a_dataclass_which_replace_would_copy():
    assert not [name for name, cls in _owners().items() if dataclasses.is_dataclass(cls)]


def test_every_class_that_closes_a_number_of_its_own_is_known_as_an_owner():
    """`os.close(self...)`, wherever it is: also in classes with another name for close()."""
    found = 0
    for module in _modules():
        path = getattr(module, "__file__", None)
        source = Path(path).read_text() if path else ""
        if "os.close(" not in source:
            continue
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.ClassDef) and _closes_own(node):
                found += 1
                assert _refuses(copy.copy, _blank(getattr(module, node.name))), node.name
    assert found > 10


def _closes_own(cls: ast.ClassDef) -> bool:
    return any(
        isinstance(node, ast.Call)
        and ast.unparse(node.func) == "os.close"
        and ast.unparse(node.args[0]).startswith("self")
        for node in ast.walk(cls)
    )


def test_a_class_of_a_user_that_derives_from_an_owner_refuses_too():
    class Mine(Closing):
        def close(self) -> None:
            pass

    class Slotted(SoleOwner):
        __slots__ = ("fd",)

    for cls in (Mine, Slotted):
        with pytest.raises(TypeError, match=f"cannot copy or pickle '{cls.__name__}' object"):
            copy.copy(cls())
