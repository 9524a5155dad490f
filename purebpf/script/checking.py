"""`Checking`: the parts of the checker that types of builtins and functions ask."""

from __future__ import annotations

from typing import Protocol

from purebpf.script import tree
from purebpf.script.host import Host
from purebpf.script.map_info import MapInfo
from purebpf.script.settings import Config, Settings
from purebpf.script.types import Type
from purebpf.script.unit import Unit
from purebpf.script.world import World

__all__ = ["Checking"]


class Checking(Protocol):
    """A script that is being checked: see `purebpf.script.expression_types`."""

    world: World
    host: Host
    settings: Settings
    config: Config
    maps: dict[str, MapInfo]
    unit: Unit
    is_final: bool

    def infer(self, node: tree.Expression) -> Type | None:
        """Find the type of an expression; None if it is not known yet."""

    def constant(self, node: tree.Expression) -> int | None:
        """Return the value of an expression that is known before the script runs."""

    def number(self, node: tree.Expression, use: str) -> int:
        """Return the value of an expression that must be a constant."""

    def map_info(self, name: str) -> MapInfo:
        """Return the map with a name."""

    def check_key(self, info: MapInfo, node: tree.Map) -> None:
        """Take the key of a use of a map into its type."""
