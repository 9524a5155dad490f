"""The build hook of hatchling: compiles the C of a tool's packages into its wheel.

pyproject.toml has the table `[tool.hatch.build.targets.wheel.hooks.purebpf]` with
`packages = ["demo"]`, the directories with `*.bpf.c`, and options for the compiler.
"""

from __future__ import annotations

import os
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.plugin import hookimpl

from purebpf.build.generation import generate
from purebpf.build.options import parse_options
from purebpf.errors import FormatError

__all__ = ["BpfBuildHook", "hatch_register_build_hook"]

_OF_HATCH = {
    "dependencies",
    "enable-by-default",
    "require-runtime-dependencies",
    "require-runtime-features",
}
"""Options of every hook, which hatchling itself reads."""


class BpfBuildHook(BuildHookInterface[Any]):
    """Compiles every `*.bpf.c` of the packages, in place, before files are listed."""

    PLUGIN_NAME = "purebpf"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
        """Compile, and put the results into the wheel, though version control ignores them."""
        options = {
            name: value
            for name, value in self.config.items()
            if name not in _OF_HATCH and name != "packages"
        }
        source = f"pyproject.toml, hook {self.PLUGIN_NAME}"
        packages = self.config.get("packages")
        if not isinstance(packages, list) or not packages:
            raise FormatError(source, "packages", "expected an array of directories with *.bpf.c")
        arguments = parse_options(options, self.root, source)._asdict()
        for package in packages:
            for path in generate(os.path.join(self.root, package), **arguments):
                build_data["artifacts"].append(f"/{os.path.relpath(path, self.root)}")


@hookimpl
def hatch_register_build_hook() -> type[BpfBuildHook]:
    """Return the hook that hatchling finds by the entry point `hatch`."""
    return BpfBuildHook
