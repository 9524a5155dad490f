"""The layout of V8's objects and code, from the constants that its programs publish.

node's program has constants for post-mortem debuggers (`v8dbg_*`, tools/gen-postmortem-metadata.py
in V8): offsets of fields, types of objects, kinds of code. Their names change between versions, and
some fields that a walk needs have none; those lie beside others in an order that each version has.
So the versions are listed: only those that were tried are read.
"""

from __future__ import annotations

from collections.abc import Mapping

from purebpf.tuples import NamedTuple

__all__ = ["ABSENT", "CONSTANTS", "VERSIONS", "V8Layout", "V8LayoutError", "read_layout"]

ABSENT = -1
"""The offset of a field that this version does not need."""
CONSTANTS = "v8dbg_"
"""How the names of the constants begin."""
VERSIONS = {
    (10, 1): 18,
    (10, 2): 18,
    (11, 3): 20,
    (11, 8): 21,
    (12, 4): 22,
    (12, 9): 23,
    (13, 6): 24,
    (14, 1): 25,
    (14, 6): 26,
}
"""Versions of V8 that are read, and the node that has them."""
_WORD = 8
_LARGEST = 4096
"""Bytes: no field lies further."""


class V8LayoutError(Exception):
    """A V8 whose frames are not read; the message says why, in words."""


class V8Layout(NamedTuple):
    """Offsets in bytes, by object; types of objects; `ABSENT` where a version has no such thing.

    Attributes:
        version: of V8, 1306 for 13.6.
        map_type: the type of an object, in its map.
        function_shared, function_code: in a JSFunction. The code is `ABSENT` from 13 on.
        shared_*: in a SharedFunctionInfo.
        script_*: in a Script.
        code_*: in a Code. `code_header` is the distance to its instructions, where they are behind
            it (10); elsewhere `code_start` has their address.
        bytecode_*: in a BytecodeArray.
        kind_*: kinds of code, in its flags.
        deopt_*: indexes in the deoptimisation data of optimised code.
        scope_locals, scope_first: words of a ScopeInfo, from the word behind its map.
        type_*: types of objects.
    """

    version: int
    map_type: int
    function_shared: int
    function_code: int
    shared_data: int
    shared_name: int
    shared_script: int
    shared_flags: int
    script_source: int
    script_name: int
    script_line_offset: int
    script_line_ends: int
    script_id: int
    code_deopt: int
    code_positions: int
    code_start: int
    code_header: int
    code_size: int
    code_flags: int
    bytecode_positions: int
    bytecode_data: int
    kind_baseline: int
    kind_maglev: int
    kind_turbofan: int
    deopt_literals: int
    deopt_optimisation: int
    deopt_shared: int
    deopt_positions: int
    scope_locals: int
    scope_first: int
    type_function_first: int
    type_function_last: int
    type_shared: int
    type_script: int
    type_map: int
    type_scope: int
    type_code: int
    type_stream: int
    type_bytecode: int
    type_interpreter: int
    type_fixed_array: int
    first_not_string: int
    frame_builtin_exit: int

    @property
    def has_protected(self) -> bool:
        """Return True if deoptimisation data have an array of their own for bytecodes."""
        return self.version >= _PROTECTED


_PROTECTED = 1300
_FIELDS = {
    "map_type": ("class_Map__instance_type__uint16_t",),
    "function_shared": ("class_JSFunction__shared__SharedFunctionInfo",),
    "shared_name": (
        "class_SharedFunctionInfo__name_or_scope_info__Object",
        "class_SharedFunctionInfo__name_or_scope_info__Tagged_Object_",
        "class_SharedFunctionInfo__name_or_scope_info__Tagged_NameOrScopeInfoT_",
    ),
    "shared_script": (
        "class_SharedFunctionInfo__script_or_debug_info__HeapObject",
        "class_SharedFunctionInfo__script__Tagged_HeapObject_",
    ),
    "shared_flags": ("class_SharedFunctionInfo__flags__int",),
    "script_source": ("class_Script__source__Object",),
    "script_name": ("class_Script__name__Object",),
    "script_line_ends": ("class_Script__line_ends__Object",),
    "bytecode_data": ("class_BytecodeArray__data__uintptr_t",),
    "kind_baseline": ("CodeKindBaseline",),
    "scope_locals": ("scopeinfo_idx_ncontextlocals",),
    "scope_first": ("scopeinfo_idx_first_vars",),
    "type_function_first": ("FirstJSFunctionType", "type_JSFunction__JS_FUNCTION_TYPE"),
    "type_shared": ("type_SharedFunctionInfo__SHARED_FUNCTION_INFO_TYPE",),
    "type_script": ("type_Script__SCRIPT_TYPE",),
    "type_map": ("type_Map__MAP_TYPE",),
    "type_scope": ("type_ScopeInfo__SCOPE_INFO_TYPE",),
    "type_code": ("type_Code__CODE_TYPE",),
    "type_bytecode": ("type_BytecodeArray__BYTECODE_ARRAY_TYPE",),
    "type_interpreter": ("type_InterpreterData__INTERPRETER_DATA_TYPE",),
    "type_fixed_array": ("type_FixedArray__FIXED_ARRAY_TYPE",),
    "first_not_string": ("FirstNonstringType",),
    "frame_builtin_exit": ("frametype_BuiltinExitFrame",),
}
"""What all versions have: the names that it has had."""
_EXPECTED = {
    "TaggedSize": _WORD,
    "SmiValueShift": 1,
    "SmiShiftSize": 31,
    "HeapObjectTag": 1,
    "CodeKindFieldShift": 0,
    "CodeKindFieldMask": 15,
    "StringRepresentationMask": 7,
    "StringEncodingMask": 8,
    "OneByteStringTag": 8,
    "SeqStringTag": 0,
    "ConsStringTag": 1,
    "ExternalStringTag": 2,
    "SlicedStringTag": 3,
    "ThinStringTag": 5,
    "class_String__length__int32_t": 12,
    "class_SeqOneByteString__chars__char": 16,
    "class_SeqTwoByteString__chars__char": 16,
    "class_ConsString__first__String": 16,
    "class_ConsString__second__String": 24,
    "class_SlicedString__parent__String": 16,
    "class_SlicedString__offset__SMI": 24,
    "class_ThinString__actual__String": 16,
    "class_ExternalString__resource__Object": 16,
    "class_FixedArrayBase__length__SMI": 8,
    "class_FixedArray__data__uintptr_t": 16,
    "off_fp_context": -8,
    "off_fp_function": -16,
    "off_fp_bytecode_array": -32,
    "off_fp_bytecode_offset": -40,
}
"""Constants on which the readers rely. Pointers are compressed in Chromium and Electron, which have
another `TaggedSize`."""
_FUNCTION_TYPES = 16
"""From the first to the last type of functions, where the constants do not say the last."""
_FUNCTION_DATA = 8
_SCRIPT_ID, _SCRIPT_LINE_OFFSET = 48, 8
"""Behind a script's name: its number, and the line of the file on which it begins."""
_BEHIND, _NAMELESS = 10, 11
"""The version in which instructions are behind their Code, and the one that has no constants for
their place."""
_NARROW_FLAGS = (11, 8)
"""The version from which on the size stands 4 bytes behind the flags, not 8; and from which on a
function's code stands before its SharedFunctionInfo."""


def read_layout(version: tuple[int, int], constants: Mapping[str, int]) -> V8Layout:
    """The layout of a version.

    Args:
        version: of V8, (13, 6).
        constants: by name, without `CONSTANTS`.

    Raises:
        V8LayoutError: it is a version that was not tried; a constant is missing, or has a value
            that this reader does not expect.
    """
    if version not in VERSIONS:
        nodes = f"{min(VERSIONS.values())} to {max(VERSIONS.values())}"
        raise V8LayoutError(f"V8 {_text(version)}: purebpf reads those of node {nodes}")
    for name, value in _EXPECTED.items():
        if constants.get(name) != value:
            raise V8LayoutError(f"V8 {_text(version)}: {name} is {constants.get(name)}")
    values = {field: _find(version, constants, field, names) for field, names in _FIELDS.items()}
    values |= _code(version, constants)
    values |= _deoptimisation(constants)
    first, name_at = values["type_function_first"], values["script_name"]
    layout = V8Layout(
        version=100 * version[0] + version[1],
        function_code=_function_code(version, constants, values["function_shared"]),
        shared_data=_FUNCTION_DATA,
        script_line_offset=name_at + _SCRIPT_LINE_OFFSET,
        script_id=name_at + _SCRIPT_ID,
        kind_maglev=values["kind_baseline"] + 1,
        kind_turbofan=values["kind_baseline"] + 2,
        type_function_last=constants.get("LastJSFunctionType", first + _FUNCTION_TYPES),
        type_stream=constants.get(
            "type_InstructionStream__INSTRUCTION_STREAM_TYPE", values["type_code"]
        ),
        bytecode_positions=_bytecode_positions(constants),
        **values,
    )
    if any(not ABSENT <= value <= _LARGEST for value in layout):
        raise V8LayoutError(f"V8 {_text(version)}: an offset that no object has")
    return layout


def _find(
    version: tuple[int, int], constants: Mapping[str, int], field: str, names: tuple[str, ...]
) -> int:
    for name in names:
        if name in constants:
            return constants[name]
    raise V8LayoutError(f"V8 {_text(version)}: no constant for {field}")


def _function_code(version: tuple[int, int], constants: Mapping[str, int], shared: int) -> int:
    """The offset of a function's code: from 13 on it has a handle in its place."""
    for name in ("class_JSFunction__code__CodeT", "class_JSFunction__code__Tagged_Code_"):
        if name in constants:
            return constants[name]
    if version[0] == _NAMELESS:
        return shared + 3 * _WORD if version < _NARROW_FLAGS else shared - _WORD
    return ABSENT


def _bytecode_positions(constants: Mapping[str, int]) -> int:
    """Behind the length: a wrapper (12 and later), constants, handlers, positions."""
    has_wrapper = "class_BytecodeArray__wrapper__Tagged_BytecodeWrapper_" in constants
    return 3 * _WORD if has_wrapper else 4 * _WORD


def _code(version: tuple[int, int], constants: Mapping[str, int]) -> dict[str, int]:
    """The fields of a Code."""

    def one(name: str) -> int:
        return _find(version, constants, name, (f"class_Code__{name}",))

    header = ABSENT
    if version[0] == _BEHIND:
        header, start = one("instruction_start__uintptr_t"), ABSENT
        deopt = 2 * _WORD
    elif version[0] == _NAMELESS:
        deopt = constants.get("class_Code__deoptimization_data__FixedArray", _WORD)
        start = deopt + 3 * _WORD
    else:
        deopt, start = _WORD, one("instruction_start__Address")
    if version[0] == _NAMELESS:
        flags = start + _WORD
        size = flags + (_WORD if version < _NARROW_FLAGS else _WORD // 2)
    else:
        flags, size = one("flags__uint32_t"), one("instruction_size__int")
    return {
        "code_deopt": deopt,
        "code_positions": deopt + _WORD,
        "code_start": start,
        "code_header": header,
        "code_size": size,
        "code_flags": flags,
    }


def _deoptimisation(constants: Mapping[str, int]) -> dict[str, int]:
    """Indexes of deoptimisation data, which 10 has no constants for."""
    prefix = "DeoptimizationData"
    shared = ("SharedFunctionInfo", "SharedFunctionInfoWrapper", "WrappedSharedFunctionInfo")
    return {
        "deopt_literals": constants.get(f"{prefix}LiteralArrayIndex", 2),
        "deopt_optimisation": constants.get(f"{prefix}OptimizationIdIndex", 5),
        "deopt_shared": next(
            (
                constants[f"{prefix}{name}Index"]
                for name in shared
                if f"{prefix}{name}Index" in constants
            ),
            6,
        ),
        "deopt_positions": constants.get(f"{prefix}InliningPositionsIndex", 7),
    }


def _text(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))
