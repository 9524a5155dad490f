"""The offsets in each version of PHP that a stack trace needs.

The engine names no offsets. Its file has the number of the interface that extensions are built for,
`API420220829,NTS`: structures that extensions see stay the same as long as that number does.
`scripts/generate_runtime.py` compiles the offsets of a number from the headers.
"""

from __future__ import annotations

from purebpf.tuples import NamedTuple

__all__ = ["LAYOUTS", "NONE", "PhpLayout", "version_of"]

NONE = -1
"""The offset of what is not known of a version."""


class PhpLayout(NamedTuple):
    """Offsets in bytes.

    Attributes:
        version: 802 is PHP 8.2.
        current: in `executor_globals`, the frame that runs.
        frame_opline, frame_function, frame_object, frame_info, frame_previous: in a frame
            (`zend_execute_data`): its instruction, its function, `This` with its type and the flags
            of the call, its caller.
        function_name, function_scope: in every function.
        function_file, function_line: in a function of a script, its file and its first line.
        function_opcodes, function_last: in the same, its instructions and their number.
        class_name: in a class.
        opline_line, opline_size: of an instruction.
        string_length, string_text: in a string.
        object_class: in an object.
        generator_frame, generator_parent: in a generator, its frame, and the generator that it
            delegates to by `yield from`.
    """

    version: int
    current: int = 488
    frame_opline: int = 0
    frame_function: int = 24
    frame_object: int = 32
    frame_info: int = 40
    frame_previous: int = 48
    function_name: int = 8
    function_scope: int = 16
    function_file: int = 144
    function_line: int = 152
    function_opcodes: int = 72
    function_last: int = 68
    class_name: int = 8
    opline_line: int = 24
    opline_size: int = 32
    string_length: int = 16
    string_text: int = 24
    object_class: int = 16
    generator_frame: int = 56
    generator_parent: int = 152


LAYOUTS = {
    420200930: PhpLayout(800),
    420210902: PhpLayout(801),
    420220829: PhpLayout(
        802,
        function_file=152,
        function_line=160,
        function_opcodes=88,
        function_last=80,
    ),
    420230831: PhpLayout(803, function_opcodes=80, function_last=76),
    420240924: PhpLayout(
        804,
        function_file=168,
        function_line=176,
        function_opcodes=104,
        function_last=96,
    ),
}
"""By the number of the extension interface."""

_OTHERS = {
    320180731: "7.3",
    320190902: "7.4",
    420250925: "8.5",
}


def version_of(api: int) -> str:
    """Return the version of PHP with an extension interface: "8.2"; "" if it is not known."""
    layout = LAYOUTS.get(api)
    if layout is not None:
        return f"{layout.version // 100}.{layout.version % 100}"
    return _OTHERS.get(api, "")
