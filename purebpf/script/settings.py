"""`Settings`: the options of a compilation, and the values of a script's config block."""

from __future__ import annotations

from collections.abc import Mapping

from purebpf.late_pattern import compile_later
from purebpf.script import tree
from purebpf.script.script_error import ScriptError
from purebpf.similar import suggest
from purebpf.tuples import NamedTuple

__all__ = ["STACK_MODES", "Config", "Settings", "read_config"]

_OCTAL = compile_later(r"0+([0-7]+)")
_NUMBERS = {"max_strlen": 1024, "max_map_keys": 4096, "max_probes": 1024, "max_bpf_progs": 1024,
            "on_stack_limit": 32, "max_cat_bytes": 10240, "perf_rb_pages": 1024,
            "log_size": 1000000}  # fmt: skip
_FLAGS = frozenset({"cpp_demangle", "lazy_symbolication", "print_maps_on_exit", "use_blazesym",
                    "show_debug_info", "unstable_map_decl", "unstable_import", "unstable_tseries",
                    "unstable_addr", "unstable_typeinfo", "unstable_macro"})  # fmt: skip
_TEXTS = {"str_trunc_trailer": "..", "license": "GPL", "stack_mode": "bpftrace",
          "missing_probes": "error", "cache_user_symbols": "PER_PID"}  # fmt: skip
_LICENSES = ("Dual MIT/GPL", "Dual BSD/GPL", "Dual MPL/GPL", "GPL and additional rights",
             "GPL v2", "GPL")  # fmt: skip
STACK_MODES = ("bpftrace", "perf", "raw", "build_id")
"""The forms in which stacks are printed."""
_MISSING = ("error", "warn", "ignore")
_LONGEST_STRING = 32000
_MOST_PAGES = 1 << 19
_MOST_KEYS = 1 << 27


class Settings(NamedTuple):
    """The options of a compilation.

    Attributes:
        parameters: `$1` and so on.
        pid: trace this process only; 0 for all.
        uid: trace tasks that run as this user only; None for all.
        is_in_cgroup: trace tasks of a cgroup only, whose descriptor the session puts into a map.
        child: the process of the command that the run starts, 0 without one.
        is_unsafe: allow functions that change the traced system.
        environment: config variables of the environment by their lower-case names.
        options: values of getopt() by name; None for one without a value.
        probe_filter: a regular expression; other probes than begin and end need to match it.
    """

    parameters: tuple[str, ...] = ()
    pid: int = 0
    child: int = 0
    is_unsafe: bool = False
    environment: Mapping[str, str] = {}
    options: Mapping[str, str | None] = {}
    probe_filter: str = ""
    uid: int | None = None
    is_in_cgroup: bool = False

    def parameter(self, number: int) -> int | str:
        """Return the value of `$1`; an absent one is 0, and `$#` (-1) counts them."""
        if number == -1:
            return len(self.parameters)
        if not 1 <= number <= len(self.parameters):
            return 0
        text = self.parameters[number - 1]
        digits = _OCTAL.fullmatch(text)
        try:
            return int(digits[1], 8) if digits else int(text, 0)
        except ValueError:
            return text


class Config(NamedTuple):
    """Values of config variables by name."""

    numbers: Mapping[str, int]
    texts: Mapping[str, str]
    flags: Mapping[str, bool]

    @property
    def prints_maps(self) -> bool:
        """Return True if the maps are printed at the end."""
        return self.flags["print_maps_on_exit"]


def read_config(script: tree.Script, settings: Settings) -> Config:
    """Return the values of all config variables; the environment wins over the script.

    Raises:
        ScriptError: an unknown variable, or a value that it does not take.
    """
    numbers, texts, flags = dict(_NUMBERS), dict(_TEXTS), dict.fromkeys(_FLAGS, True)
    given = [(item.name, item.value, item) for item in script.config]
    nowhere = tree.Config(0, 0, "", "")
    given += [(name, value, nowhere) for name, value in settings.environment.items()]
    for name, value, node in given:
        name = name.lower().removeprefix("bpftrace_")
        if name in numbers:
            numbers[name] = _number(value, node)
        elif name in _FLAGS:
            flags[name] = value.lower() not in ("0", "false")
        elif name in texts:
            texts[name] = value
        elif node is not nowhere:
            hint = suggest(name, [*numbers, *texts, *_FLAGS])
            message = f"{node.name}: not a known configuration option"
            raise ScriptError(message, node.start, node.end, hint)
    if not 1 <= numbers["max_strlen"] <= _LONGEST_STRING:
        raise ScriptError(f"max_strlen must be from 1 to {_LONGEST_STRING}")
    if not 1 <= numbers["perf_rb_pages"] <= _MOST_PAGES:
        raise ScriptError(f"perf_rb_pages must be from 1 to {_MOST_PAGES}")
    if not 1 <= numbers["max_map_keys"] <= _MOST_KEYS:
        raise ScriptError(f"max_map_keys must be from 1 to {_MOST_KEYS}")
    if texts["license"] not in _LICENSES:
        valid = ", ".join(_LICENSES)
        message = f"Invalid value for license. Found: {texts['license']}. Valid values: {valid}"
        raise ScriptError(message)
    if texts["stack_mode"] not in STACK_MODES:
        raise ScriptError(f"Invalid value for stack_mode. Valid values: {', '.join(STACK_MODES)}")
    if texts["missing_probes"] not in _MISSING:
        message = f"Invalid value for missing_probes. Valid values: {', '.join(_MISSING)}"
        raise ScriptError(message)
    return Config(numbers, texts, flags)


def _number(value: str, node: tree.Config) -> int:
    try:
        return int(value, 0)
    except ValueError:
        message = f"{node.name} expects a number, not {value!r}"
        raise ScriptError(message, node.start, node.end) from None
