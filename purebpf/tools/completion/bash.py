"""Completion in bash. It needs nothing but bash itself, not the package bash-completion."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence

from purebpf.tools.completion.model import Command, Value

__all__ = ["script"]

_HEAD = """\
# completion of purebpf in bash; made by `purebpf completion bash`
_purebpf() {
    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}
    local name=${COMP_WORDS[1]} options= arguments= word
    COMPREPLY=()
    if ((COMP_CWORD == 1)); then
        COMPREPLY=($(compgen -W %(commands)s -- "$current"))
        return
    fi
    for word in "${COMP_WORDS[@]:2:COMP_CWORD-2}"; do
        if [[ $word == -- ]]; then
            compopt -o default
            [[ $previous == -- ]] && COMPREPLY=($(compgen -c -- "$current"))
            return
        fi
    done
"""

_VALUES = """\
    case "$name $previous" in
%s
    esac
"""

_OPTIONS = """\
    case $name in
%s
    esac
    if [[ $current == -* ]]; then
        COMPREPLY=($(compgen -W "$options" -- "$current"))
    else
        case $arguments in
        file) compopt -o default ;;
        ?*) COMPREPLY=($(compgen -W "$arguments" -- "$current")) ;;
        esac
    fi
}
complete -F _purebpf purebpf
"""

_BY_KIND = {
    "file": "compopt -o default",
    "directory": 'compopt -o filenames; COMPREPLY=($(compgen -d -- "$current"))',
    "pid": 'COMPREPLY=($(cd /proc && compgen -W "$(echo [0-9]*)" -- "$current"))',
    "user": 'COMPREPLY=($(compgen -u -- "$current"))',
    "group": 'COMPREPLY=($(compgen -g -- "$current"))',
    "other": "COMPREPLY=()",
}


def script(commands: Sequence[Command]) -> str:
    """The text that bash sources."""
    names = " ".join(["--help", "--version", *(command.name for command in commands)])
    return "".join(
        (
            _HEAD % {"commands": shlex.quote(names)},
            _VALUES % "\n".join(line for command in commands for line in _values(command)),
            _OPTIONS % "\n".join(map(_options, commands)),
        )
    )


def _values(command: Command) -> Iterator[str]:
    """Yield the values that an option takes, by the word before."""
    for option in command.options:
        if option.value is not None and not option.value.optional:
            words = "|".join(f'"{command.name} {flag}"' for flag in option.flags)
            yield f"    {words}) {_complete(option.value)}; return ;;"


def _complete(value: Value) -> str:
    if value.kind == "choice":
        return f'COMPREPLY=($(compgen -W {_words(value.choices)} -- "$current"))'
    return _BY_KIND[value.kind]


def _options(command: Command) -> str:
    flags = [flag for option in command.options for flag in option.flags]
    flags += ["--"] if command.runs_command else []
    arguments: Iterable[str] = ()
    for value in command.arguments:
        arguments = value.choices or (("file",) if value.kind == "file" else arguments)
    return f"    {command.name}) options={_words(flags)} arguments={_words(arguments)} ;;"


def _words(words: Iterable[str]) -> str:
    return shlex.quote(" ".join(words))
