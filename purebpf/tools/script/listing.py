"""Lists attach points that fit a pattern or that a script has, and types of the kernel."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from purebpf.cli import command
from purebpf.observe.script.local_host import LocalHost
from purebpf.results.model.spelling import printable
from purebpf.script.listing import describe_fields, list_points
from purebpf.script.parser import parse
from purebpf.script.point import is_wild, match_names
from purebpf.script.points import expand
from purebpf.script.script_error import ScriptError
from purebpf.tools.script.request import ScriptOptions
from purebpf.tools.script.source import read_script

__all__ = ["list_requested"]

_TAGS = ("struct ", "union ", "enum ")
_TIMERS = ("interval", "profile")


def list_requested(options: ScriptOptions) -> Iterator[str]:
    """Yield the lines of `-l`."""
    host = LocalHost(options.pid, options.traceable_functions)
    if options.text is not None or os.path.isfile(options.path):
        names = _points_of_script(options, host)
    elif any(word.strip().startswith(_TAGS) for word in options.path.split(",")):
        yield from _points_and_types(options, host)
        return
    else:
        if options.path.endswith(".bt"):
            command.say(
                f"WARNING: It appears that '{options.path}' is a filename but the file does not "
                f"exist. Treating '{options.path}' as a search pattern."
            )
        names = list_points(options.path, host)
    yield from _points(names, options, host)


def _points(names: Iterable[str], options: ScriptOptions, host: LocalHost) -> Iterator[str]:
    """Yield attach points, with -v and their arguments."""
    for name in names:
        yield f"{printable(name)}\n"
        if options.is_verbose:
            yield from (f"    {printable(line)}\n" for line in describe_fields(name, host))


def _points_and_types(options: ScriptOptions, host: LocalHost) -> Iterator[str]:
    """Yield what fits each of the patterns, in their order."""
    for word in options.path.split(","):
        pattern = word.strip()
        if pattern.startswith(_TAGS):
            yield from _types(pattern, host, is_verbose=options.is_verbose)
        else:
            yield from _points(list_points(pattern, host), options, host)


def _points_of_script(options: ScriptOptions, host: LocalHost) -> list[str]:
    text, name = read_script(options)
    names: dict[str, None] = {}
    try:
        for probe in parse(text).probes:
            for node in probe.points:
                for point in expand(node, host):
                    names.update(dict.fromkeys(_listed(point.kind, point.name, host)))
    except ScriptError as error:
        command.say(error.render(text, name))
    return list(names)


def _listed(kind: str, name: str, host: LocalHost) -> list[str]:
    if kind not in _TIMERS:
        return [name]
    return list_points(":".join((*name.split(":")[:2], "")), host)


def _types(pattern: str, host: LocalHost, *, is_verbose: bool) -> Iterator[str]:
    """Yield the names of types of the kernel, or their declarations in C."""
    btf = host.btf()
    if btf is None:
        return
    from purebpf.btf.types.kinds import Kind
    from purebpf.btf.types.parse import ids_of

    kinds = {"struct": Kind.STRUCT, "union": Kind.UNION, "enum": Kind.ENUM}
    tag, _, name = pattern.partition(" ")
    if is_wild(name):
        names = match_names(name, [btf.name(type_id) for type_id in ids_of(btf, kinds[tag])])
    else:
        names = [name]
    for name in names:
        for type_id in btf.find(name, kinds[tag]):
            if not is_verbose:
                yield f"{tag} {name}\n"
                continue
            text = btf.dump_c(type_id)
            begin = text.find(f"\n{tag} {name} {{\n") + 1
            yield f"vmlinux: {text[begin : text.find('};', begin)]}}};\n\n"
