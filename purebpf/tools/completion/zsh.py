"""Completion in zsh, as a function for a folder of `$fpath`; it can be sourced, too."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from purebpf.tools.completion.model import Command, Option, Value

__all__ = ["script"]

_SCRIPT = """\
#compdef purebpf
# completion of purebpf in zsh; made by `purebpf completion zsh`
_purebpf() {
    if ((CURRENT == 2)); then
        local -a commands=(
%(names)s
        )
        _describe command commands
        _arguments '(- *)'{-h,--help}'[list the commands]' \\
            '(- *)'{-V,--version}'[print the version]'
        return
    fi
    local behind=$words[(i)--]
    if ((CURRENT > behind)); then
        shift $behind words
        ((CURRENT -= behind))
        _normal
        return
    fi
    shift words
    ((CURRENT -= 1))
    case $words[1] in
%(commands)s
    esac
}
if [[ $funcstack[1] == _purebpf ]]; then _purebpf "$@"; else compdef _purebpf purebpf; fi
"""

_BY_KIND = {
    "file": "_files",
    "directory": "_files -/",
    "pid": "_pids",
    "user": "_users",
    "group": "_groups",
    "other": "()",  # a blank would be a message, which keeps an option from being inserted
}


def script(commands: Sequence[Command]) -> str:
    """The text that zsh loads."""
    names = "\n".join(
        f"        {_quote(f'{command.name}:{command.summary}')}" for command in commands
    )
    return _SCRIPT % {"names": names, "commands": "\n".join(map(_command, commands))}


def _command(command: Command) -> str:
    specs = " \\\n            ".join(_specs(command))
    return f"    {command.name})\n        _arguments \\\n            {specs} ;;"


def _specs(command: Command) -> Iterator[str]:
    for option in command.options:
        yield _option(option)
    for position, value in enumerate(command.arguments, 1):
        yield _quote(f"{position}{':' if value.optional else ''}:{_of_value(value)}")


def _option(option: Option) -> str:
    """`'(-p --pid)'{-p,--pid}'[these processes only]:PID:_pids'`."""
    value = option.value
    takes = "" if value is None else f"{':' if value.optional else ''}:{_of_value(value)}"
    about = _quote(f"[{_escape(option.help)}]{takes}")
    if len(option.flags) == 1:
        return f"{option.flags[0]}{about}"
    return f"'({' '.join(option.flags)})'{{{','.join(option.flags)}}}{about}"


def _of_value(value: Value) -> str:
    action = f"({' '.join(value.choices)})" if value.kind == "choice" else _BY_KIND[value.kind]
    return f"{_escape(value.name)}:{action}"


def _escape(text: str) -> str:
    for special in "\\[]:":
        text = text.replace(special, f"\\{special}")
    return text


def _quote(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
