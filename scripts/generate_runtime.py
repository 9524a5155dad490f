"""Write the layout of a runtime that its own file describes, as tests expect it.

    python scripts/generate_runtime.py JDK_FOLDER /usr/bin/node /usr/include/php/20220829 \
        ruby-3.1.2 [...] [--check]

A folder is a JDK, or a runtime image: its libjvm.so is loaded, its tables are read as purebpf reads
those of a process, and written to tests/data/hotspot/VERSION.json. A file is a node, or its
library: its constants are read, and written to tests/data/v8/VERSION.json, by the version of V8. A
folder with php.h has the headers of a PHP (Debian's php8.2-dev): the C compiler gives their
offsets, which must be those of purebpf/runtimes/php/layout.py, for tests/data/php/VERSION.json. A
folder called ruby-VERSION with vm_core.h is the source of a Ruby that was configured: the same, for
purebpf/runtimes/ruby/layout.py and tests/data/ruby/VERSION.json. A
field that purebpf needs and that the file does not describe is an error that names it. --check
writes nothing, and fails when a file in tests/data is not what the runtime says.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from purebpf.errors import FormatError  # noqa: E402
from purebpf.observe.runtimes.v8.v8_program import describe  # noqa: E402
from purebpf.runtimes.hotspot.layout import LayoutError, read_jvm  # noqa: E402
from purebpf.runtimes.hotspot.vm_structs import ALL_EXPORTS  # noqa: E402
from purebpf.runtimes.memory import Memory  # noqa: E402
from purebpf.runtimes.php.layout import LAYOUTS, PhpLayout  # noqa: E402
from purebpf.runtimes.ruby.layout import LAYOUTS as RUBY_LAYOUTS  # noqa: E402
from purebpf.runtimes.v8.layout import V8LayoutError  # noqa: E402
from purebpf.symbols.elf_image import ElfImage  # noqa: E402

DATA = ROOT / "tests/data"


def _at(struct: str, field: str) -> str:
    return f"offsetof({struct}, {field})"


_PHP_FIELDS = {
    "current": _at("zend_executor_globals", "current_execute_data"),
    "frame_opline": _at("zend_execute_data", "opline"),
    "frame_function": _at("zend_execute_data", "func"),
    "frame_object": _at("zend_execute_data", "This"),
    "frame_info": _at("zend_execute_data", "This.u1.type_info"),
    "frame_previous": _at("zend_execute_data", "prev_execute_data"),
    "function_name": _at("zend_function", "common.function_name"),
    "function_scope": _at("zend_function", "common.scope"),
    "function_file": _at("zend_op_array", "filename"),
    "function_line": _at("zend_op_array", "line_start"),
    "function_opcodes": _at("zend_op_array", "opcodes"),
    "function_last": _at("zend_op_array", "last"),
    "class_name": _at("zend_class_entry", "name"),
    "opline_line": _at("zend_op", "lineno"),
    "opline_size": "sizeof(zend_op)",
    "string_length": _at("zend_string", "len"),
    "string_text": _at("zend_string", "val"),
    "object_class": _at("zend_object", "ce"),
    "generator_frame": _at("zend_generator", "execute_data"),
    "generator_parent": _at("zend_generator", "node.parent"),
}
"""C expressions of the fields of `PhpLayout`."""
_BODY = "struct rb_iseq_constant_body"
_RUBY_FIELDS = {
    "context_stack": _at("rb_execution_context_t", "vm_stack"),
    "context_stack_size": _at("rb_execution_context_t", "vm_stack_size"),
    "context_frame": _at("rb_execution_context_t", "cfp"),
    "context_thread": _at("rb_execution_context_t", "thread_ptr"),
    "thread_context": _at("rb_thread_t", "ec"),
    "frame_size": "sizeof(rb_control_frame_t)",
    "frame_pc": _at("rb_control_frame_t", "pc"),
    "frame_iseq": _at("rb_control_frame_t", "iseq"),
    "frame_env": _at("rb_control_frame_t", "ep"),
    "iseq_body": _at("rb_iseq_t", "body"),
    "body_size": _at(_BODY, "iseq_size"),
    "body_code": _at(_BODY, "iseq_encoded"),
    "body_path": _at(_BODY, "location.pathobj"),
    "body_label": _at(_BODY, "location.label"),
    "body_first_line": _at(_BODY, "location.first_lineno"),
    "body_lines": _at(_BODY, "insns_info.body"),
    "body_lines_size": _at(_BODY, "insns_info.size"),
    "body_line_index": _at(_BODY, "insns_info.succ_index_table"),
    "line_size": "sizeof(struct iseq_insn_info_entry)",
    "entry_definition": _at("rb_method_entry_t", "def"),
    "definition_id": _at("rb_method_definition_t", "original_id"),
    "last_operator": "tLAST_OP_ID",
}
"""C expressions of the fields of `RubyLayout`, but for `embeds_length`."""


def read_node(program: Path) -> dict[str, int]:
    """The layout that a node describes.

    Raises:
        V8LayoutError: it describes no V8 that purebpf reads.
    """
    layout = describe(ElfImage.of_bytes(program.read_bytes(), str(program))).layout
    return {name: int(value) for name, value in layout._asdict().items()}


def read_library(library: Path) -> dict[str, int]:
    """The layout that a libjvm.so describes, loaded into this process.

    Raises:
        LayoutError: it describes no JVM that purebpf reads.
    """
    loaded = ctypes.CDLL(str(library))
    try:
        symbols = {
            name: ctypes.addressof(ctypes.c_uint64.in_dll(loaded, name)) for name in ALL_EXPORTS
        }
    except ValueError as error:
        raise LayoutError(str(error)) from None
    memory = os.open("/proc/self/mem", os.O_RDONLY | os.O_CLOEXEC)
    try:
        jvm = read_jvm(Memory(lambda at, size: os.pread(memory, size, at)), symbols)
    finally:
        os.close(memory)
    return {name: int(value) for name, value in jvm.layout._asdict().items()}


def read_headers(folder: Path) -> dict[str, int]:
    """The layout that the headers of a PHP describe.

    Raises:
        LayoutError: purebpf has another one, or none, or the headers are not whole.
    """
    fields = [name for name in PhpLayout._fields if name in _PHP_FIELDS]
    rows = "".join(f', "{name}", (long)({_PHP_FIELDS[name]})' for name in fields)
    formats = "%d" + "\\n%s %ld" * len(fields)
    program = (
        '#include "php.h"\n#include "zend_extensions.h"\n#include "zend_generators.h"\n'
        f'int main(void) {{ printf("{formats}", ZEND_EXTENSION_API_NO{rows}); return 0; }}\n'
    )
    text = _run(program, [folder / part for part in ("", "main", "Zend", "TSRM")])
    api, *lines = text.splitlines()
    layout = LAYOUTS.get(int(api))
    if layout is None:
        raise LayoutError(f"layout.py has no PHP with the extension interface {api}")
    found = {name: int(value) for name, value in map(str.split, lines)}
    wrong = {name: value for name, value in found.items() if value != getattr(layout, name)}
    if wrong:
        raise LayoutError(f"layout.py has other offsets than these headers of {api}: {wrong}")
    return {"version": layout.version, "api": int(api), **found}


def read_ruby(folder: Path) -> dict[str, int]:
    """The layout that the source of a Ruby describes.

    Raises:
        LayoutError: purebpf has another one, or none, or the source is not whole.
    """
    match = re.match(r"ruby-(\d+)\.(\d+)", folder.name)
    layout = RUBY_LAYOUTS.get((int(match[1]), int(match[2]))) if match else None
    if layout is None:
        raise LayoutError("its name is not ruby-VERSION, or layout.py does not have that version")
    rows = "".join(f', "{name}", (long)({text})' for name, text in _RUBY_FIELDS.items())
    formats = "%s %ld\\n" * len(_RUBY_FIELDS)
    program = (
        '#include <stdio.h>\n#include "ruby/ruby.h"\n#include "vm_core.h"\n#include "iseq.h"\n'
        f'#include "method.h"\nint main(void) {{ printf("{formats}"{rows}); return 0; }}\n'
    )
    text = _run(program, [folder, folder / "include", *folder.glob(".ext/include/*")])
    found = {name: int(value) for name, value in map(str.split, text.splitlines())}
    wrong = {name: value for name, value in found.items() if value != getattr(layout, name)}
    if wrong:
        raise LayoutError(f"layout.py has other offsets than {folder.name}: {wrong}")
    return {"version": layout.version, **found}


def _run(program: str, folders: list[Path]) -> str:
    """Return the output of a C program that includes headers of these folders.

    Raises:
        LayoutError: it does not compile.
    """
    with tempfile.TemporaryDirectory() as work:
        source, built = Path(work) / "offsets.c", Path(work) / "offsets"
        source.write_text(program)
        parts = [f"-I{folder}" for folder in folders]
        command = ["cc", "-w", *parts, "-o", str(built), str(source)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise LayoutError(f"headers that do not compile: {done.stderr.strip()[-500:]}")
        return subprocess.run([built], capture_output=True, text=True, check=True).stdout


def text_of(layout: dict[str, int]) -> str:
    """A layout as the file has it."""
    return json.dumps(layout, indent=1) + "\n"


def _layout(place: Path) -> tuple[str, dict[str, int]]:
    """Return the kind of a runtime, and its layout."""
    if (place / "main/php.h").exists():
        return "php", read_headers(place)
    if (place / "vm_core.h").exists():
        return "ruby", read_ruby(place)
    if place.is_dir():
        library = next(iter(sorted(place.rglob("libjvm.so"))), None)
        if library is None:
            raise LayoutError("no libjvm.so")
        return "hotspot", read_library(library)
    return "v8", read_node(place)


def _update(place: Path, *, is_check: bool) -> bool:
    try:
        kind, layout = _layout(place)
    except (LayoutError, V8LayoutError, FormatError, OSError) as error:
        print(f"{place}: {error}", file=sys.stderr)
        return False
    target = DATA / kind / f"{layout['version']}.json"
    if not is_check:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text_of(layout))
        return True
    if target.exists() and target.read_text() == text_of(layout):
        return True
    print(f"{place}: {target.relative_to(ROOT)} is another layout", file=sys.stderr)
    return False


def main(argv: list[str]) -> int:
    """Write or check each; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("places", metavar="PLACE", nargs="+", type=Path)
    parser.add_argument("--check", action="store_true", help="write nothing")
    options = parser.parse_args(argv)
    answers = [_update(each, is_check=options.check) for each in options.places]
    return 0 if all(answers) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
