"""The hook of a place: `"cgroup/connect4"`, `"tcx/ingress"`, by the name of its section."""

from __future__ import annotations

from difflib import get_close_matches

from purebpf.abi.sections import SECTIONS

__all__ = ["attach_type_of"]

_HOOKS = {
    section.prefix: section.attach_type
    for section in SECTIONS
    if section.attach in ("cgroup", "netns", "sockmap", "tcx", "netkit", "lirc")
}


def attach_type_of(kind: str | int) -> int:
    """The enum bpf_attach_type of a section name; a number is one already.

    Raises:
        ValueError: no hook of that name; lists similar ones.
    """
    if isinstance(kind, int):
        return kind
    name = kind if kind in _HOOKS else kind.rpartition("/")[0]  # lsm_cgroup/socket_bind
    if name not in _HOOKS:
        close = get_close_matches(kind, _HOOKS) or sorted(_HOOKS)
        raise ValueError(f"unknown hook {kind!r}; similar: {', '.join(close)}")
    return _HOOKS[name]
