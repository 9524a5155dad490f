"""Functions of a library in an object: both become one spec, before it is linked.

The library's maps, variables and functions get a prefix that no C name has, so that they never meet
the object's. The library's functions become static: the verifier looks at them with the context of
the program that calls them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

from purebpf.btf.types.join import Joined
from purebpf.btf.types.join import join as join_btf
from purebpf.errors import LinkError
from purebpf.spec import (
    FunctionSpec,
    LineInfo,
    MapSpec,
    ObjectSpec,
    ProgramSpec,
    Relocation,
    RelocationKind,
    reachable_functions,
)

__all__ = ["call_library", "calls_of", "join"]

_OF_LIBRARY = (
    *(RelocationKind.CALL, RelocationKind.FUNCTION),
    *(RelocationKind.MAP, RelocationKind.DATA),
)
"""Kinds whose targets get the prefix."""


def calls_of(spec: ObjectSpec, names: Iterable[str]) -> Mapping[str, tuple[str, ...]]:
    """Return the functions that call an extern, by the extern's name: of an object's programs, and
    all that these call.
    """
    used = dict.fromkeys(
        reachable_functions(spec, (each.function for each in spec.programs.values()))
    )
    return {
        name: tuple(key for key in used if _calls_extern(spec.functions[key], name))
        for name in names
    }


def _calls_extern(function: FunctionSpec, name: str) -> bool:
    return any(
        relocation.kind is RelocationKind.EXTERN and relocation.target == name
        for relocation in function.relocations
    )


def call_library(
    spec: ObjectSpec, name: str, choose: Callable[[ProgramSpec], str], prefix: str
) -> ObjectSpec:
    """Make programs that call an extern call a function of a library.

    Args:
        spec: the object.
        name: the extern.
        choose: the key of the library's function for a program.
        prefix: of the library's names.

    Raises:
        LinkError: a function that is no program calls the extern.
    """
    programs = {program.function: program for program in spec.programs.values()}
    functions = dict(spec.functions)
    for key in calls_of(spec, (name,))[name]:
        if key not in programs:
            problem = (
                f"{functions[key].name} calls it, and is no program: the walk needs all frames of "
                "a call chain but the program's own, so that only a program, or a function that "
                "is inlined there (static __always_inline), may call it"
            )
            raise LinkError(spec.source, name, problem)
        target = prefix + choose(programs[key])
        functions[key] = functions[key]._replace(
            relocations=tuple(
                relocation._replace(kind=RelocationKind.CALL, target=target)
                if relocation.kind is RelocationKind.EXTERN and relocation.target == name
                else relocation
                for relocation in functions[key].relocations
            )
        )
    externs = {key: extern for key, extern in spec.externs.items() if key != name}
    return spec._replace(functions=functions, externs=MappingProxyType(externs))


def join(spec: ObjectSpec, library: ObjectSpec, roots: Iterable[str], prefix: str) -> ObjectSpec:
    """Add functions of a library, with all that they need.

    Args:
        spec: the object.
        library: an object without externs, settings made.
        roots: keys of the functions to add.
        prefix: for the names of its functions, maps and variables.

    Raises:
        LinkError: the object was compiled without -g.
        FormatError: the byte orders differ.
    """
    if spec.btf is None or library.btf is None:
        raise LinkError(spec.source, library.name, "the object has no BTF: compile it with -g")
    joined = join_btf(spec.btf, library.btf)
    functions = {
        prefix + key: _shifted(library.functions[key], joined, prefix)
        for key in reachable_functions(library, roots)
    }
    maps = {
        prefix + name: _shifted_map(map_spec, joined, prefix)
        for name, map_spec in library.maps.items()
    }
    variables = {
        prefix + name: variable._replace(
            name=prefix + name,
            map=prefix + variable.map,
            type_id=variable.type_id + joined.types,
        )
        for name, variable in library.variables.items()
    }
    return spec._replace(
        functions={**spec.functions, **functions},
        maps={**spec.maps, **maps},
        variables={**spec.variables, **variables},
        btf=joined.btf,
    )


def _shifted(function: FunctionSpec, joined: Joined, prefix: str) -> FunctionSpec:
    return function._replace(
        type_id=function.type_id and function.type_id + joined.types,
        relocations=tuple([_renamed(each, prefix) for each in function.relocations]),
        core_relocations=tuple(
            [
                each._replace(type_id=each.type_id + joined.types)
                for each in function.core_relocations
            ]
        ),
        line_info=tuple(
            [
                LineInfo(offset, file_name + joined.strings, line + joined.strings, line_col)
                for offset, file_name, line, line_col in function.line_info
            ]
        ),
    )


def _renamed(relocation: Relocation, prefix: str) -> Relocation:
    offset, kind, target, addend = relocation
    if kind in _OF_LIBRARY:
        return Relocation(offset, kind, prefix + target, addend)
    return relocation


def _shifted_map(map_spec: MapSpec, joined: Joined, prefix: str) -> MapSpec:
    inner = map_spec.inner
    return map_spec._replace(
        name=prefix + map_spec.name,
        key_type_id=map_spec.key_type_id and map_spec.key_type_id + joined.types,
        value_type_id=map_spec.value_type_id and map_spec.value_type_id + joined.types,
        inner=inner and _shifted_map(inner, joined, ""),
        initial=tuple((slot, prefix + name) for slot, name in map_spec.initial),
    )
