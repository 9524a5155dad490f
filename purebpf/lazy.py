"""Names of a package that are imported when they are first used (PEP 562)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

__all__ = ["names"]


def names(package: str, homes: Mapping[str, str]) -> Callable[[str], object]:
    """The `__getattr__` of `package`.

    Args:
        package: its `__name__`.
        homes: where each name lives: `"package.module.name"`; or `"package.module."`, which is a
            module itself.
    """

    def find(name: str) -> object:
        import sys
        from importlib import import_module

        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home, _, original = homes[name].rpartition(".")
        module = import_module(home)
        value = getattr(module, original) if original else module
        setattr(sys.modules[package], name, value)
        return value

    return find
