"""Completion in fish."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from purebpf.tools.completion.model import Command, Option, Value

__all__ = ["script"]

_HEAD = """\
# completion of purebpf in fish; made by `purebpf completion fish`
function __purebpf_runs
    contains -- -- (commandline -opc)
end
function __purebpf_command
    set -l words (commandline -opc) (commandline -ct)
    set -l behind (math 1 + (contains -i -- -- $words))
    __fish_complete_subcommand --commandline $words[$behind..-1]
end
complete -c purebpf -f
complete -c purebpf -n __fish_use_subcommand -s h -l help -d 'list the commands'
complete -c purebpf -n __fish_use_subcommand -s V -l version -d 'print the version'
complete -c purebpf -n __purebpf_runs -xa '(__purebpf_command)'
"""

_BY_KIND = {
    "file": "-r -F",
    "directory": "-xa '(__fish_complete_directories)'",
    "pid": "-xa '(__fish_complete_pids)'",
    "user": "-xa '(__fish_complete_users)'",
    "group": "-xa '(__fish_complete_groups)'",
    "other": "-x",
}


def script(commands: Sequence[Command]) -> str:
    """The text that fish sources."""
    return _HEAD + "".join(
        f"complete -c purebpf {line}\n" for command in commands for line in _lines(command)
    )


def _lines(command: Command) -> Iterator[str]:
    yield f"-n __fish_use_subcommand -a {command.name} -d {_quote(command.summary)}"
    chosen = f"-n '__fish_seen_subcommand_from {command.name}; and not __purebpf_runs'"
    for option in command.options:
        yield f"{chosen} {_option(option)}"
    for value in command.arguments[:1]:
        if value.kind == "choice":
            yield f"{chosen} -a {_quote(' '.join(value.choices))}"
        elif value.kind == "file":
            yield f"{chosen} -F"


def _option(option: Option) -> str:
    flags = " ".join(
        f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}" for flag in option.flags
    )
    takes = "" if option.value is None else f" {_of_value(option.value)}"
    return f"{flags}{takes} -d {_quote(option.help)}"


def _of_value(value: Value) -> str:
    if value.optional:
        return ""
    if value.kind == "choice":
        return f"-xa {_quote(' '.join(value.choices))}"
    return _BY_KIND[value.kind]


def _quote(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
