"""Headers of the BPF programs: each includes the headers that it needs, and none in a circle."""

from __future__ import annotations

import re
from collections import Counter
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

SOURCES = Path(__file__).parents[2] / "bpf_src"
COMMENT = re.compile(r"//.*|/\*(?s:.*?)\*/")
INCLUDE = re.compile(r'^\s*#\s*include\s+"(.*)"', re.MULTILINE)
DEFINITION = re.compile(
    r"^#define (?P<macro>\w+)"
    r"|^(?P<type>(?:struct|enum) \w+) \{"
    r"|^\t(?P<constant>[A-Z_0-9]+)(?: = [^;\n]*)?,$"
    r"|^} (?P<map>\w+) SEC\("
    r"|^(?:static )?(?:__always_inline|__noinline) [\w ]+?[ *](?P<function>\w+)\(",
    re.MULTILINE,
)
GUARD = re.compile(r"^#ifndef (\w+)\n#define \1$", re.MULTILINE)
USE = re.compile(r"\b(?:struct|enum) \w+|&\w+\b|\b\w+\(|\b[A-Z_][A-Z_0-9]+\b")


def read_code(source: Path) -> str:
    """Return the text of a source without comments."""
    lines = COMMENT.sub("", source.read_text()).splitlines()
    return "\n".join(line.rstrip() for line in lines)


def read_includes(folder: Path) -> dict[Path, set[Path]]:
    """Return the headers in `folder` that each of its sources includes."""
    includes = {}
    for source in folder.rglob("*.[ch]"):
        beside = [source.parent / name for name in INCLUDE.findall(read_code(source))]
        includes[source] = {
            path if path.exists() else folder / "include" / path.relative_to(source.parent)
            for path in beside
        }
    return includes


def find_circle(includes: dict[Path, set[Path]]) -> list[str]:
    """Return the names of headers that include each other in a circle; none if there is none."""
    try:
        TopologicalSorter(includes).prepare()
    except CycleError as error:
        return [path.name for path in error.args[1]]
    return []


def find_missing(folder: Path) -> set[tuple[str, str, str]]:
    """Return each header that uses a name of another one without including it.

    A header that relies on its includer has to be included in the middle of it, which is a circle
    that no line of `#include` shows. Names with more than one definition are left out: a program
    sets them for a header.

    Returns:
        The header, the name, and the header that defines it.
    """
    includes = read_includes(folder)
    code = {source: read_code(source) for source in includes}
    definitions = {source: find_definitions(text) for source, text in code.items()}
    times = Counter(name for names in definitions.values() for name in names)
    owners = {
        name: source
        for source, names in definitions.items()
        for name in names
        if times[name] == 1 and source.suffix == ".h"
    }
    missing = set()
    for source, text in code.items():
        reachable = find_reachable(source, includes)
        for use in set(USE.findall(INCLUDE.sub("", text))):
            owner = owners.get(use)
            if source.suffix == ".h" and owner is not None and owner not in reachable:
                missing.add((source.name, use, owner.name))
    return missing


def find_definitions(text: str) -> set[str]:
    """Return the names that a source defines, spelled as their uses are."""
    names = set()
    for match in DEFINITION.finditer(text):
        if match["map"]:
            names.add(f"&{match['map']}")
        elif match["function"]:
            names.add(f"{match['function']}(")
        else:
            names.add(match["macro"] or match["type"] or match["constant"])
    return names - set(GUARD.findall(text))


def find_reachable(source: Path, includes: dict[Path, set[Path]]) -> set[Path]:
    """Return a source and everything that it includes, directly or through other headers."""
    reachable = {source}
    waiting = [source]
    while waiting:
        for header in includes.get(waiting.pop(), set()) - reachable:
            reachable.add(header)
            waiting.append(header)
    return reachable


def test_no_header_includes_itself_through_others() -> None:
    assert not find_circle(read_includes(SOURCES))


def test_every_header_includes_what_it_uses() -> None:
    assert not find_missing(SOURCES)


def test_every_included_header_exists_and_every_header_is_included() -> None:
    includes = read_includes(SOURCES)
    included = set().union(*includes.values())
    assert included == {source for source in includes if source.suffix == ".h"} | {
        SOURCES / "latency.bpf.c"  # latency_stacks.bpf.c is the same program with stacks
    }


def write_headers(folder: Path, walk: str, machine: str) -> None:
    (folder / "include").mkdir(exist_ok=True)
    (folder / "one.bpf.c").write_text('#include "walk.h"\n')
    (folder / "include/walk.h").write_text(walk)
    (folder / "include/machine.h").write_text(machine)


def test_a_circle_is_found(tmp_path: Path) -> None:
    write_headers(tmp_path, '#include "machine.h"\n', "struct machine;\n")
    assert not find_circle(read_includes(tmp_path))
    write_headers(tmp_path, '#include "machine.h"\n', '\n# include "walk.h"\n')
    assert set(find_circle(read_includes(tmp_path))) == {"walk.h", "machine.h"}


def test_a_header_that_relies_on_its_includer_is_found(tmp_path: Path) -> None:
    walk = "struct walk {\n};\n#define GO_ON -1\n__noinline int look(int at)\n{\n}\n"
    walk += '#include "machine.h"\n'
    write_headers(tmp_path, walk, "// struct walk, look() and GO_ON are in a comment\n")
    assert not find_missing(tmp_path)
    write_headers(tmp_path, walk, "int step(struct walk *w)\n{\n\treturn look(GO_ON);\n}\n")
    assert find_missing(tmp_path) == {
        ("machine.h", name, "walk.h") for name in ("struct walk", "look(", "GO_ON")
    }
