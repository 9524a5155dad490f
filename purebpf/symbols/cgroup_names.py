"""/proc/PID/cgroup: which container or unit a process belongs to, by its usual name.

The text has a line for each hierarchy, `id:controllers:path`; version 2 is the line `0::path`
(cgroups(7)). Container runtimes and systemd start programs in cgroups that bear an id or a name,
each in a different way; purebpf asks no daemon. The rules are in their sources: opencontainers/runc
(libcontainer/cgroups), containers/podman, cri-o, kubelet (pkg/kubelet/cm), lxc, and systemd(1),
systemd.unit(5).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from purebpf.late_pattern import compile_later
from purebpf.tuples import NamedTuple

__all__ = ["CgroupIds", "CgroupName", "cgroup_ids", "cgroup_name", "is_called"]

_SHORT = 12  # digits of an id, as the runtimes themselves print it
_LEAST = 6  # digits of an id that are enough to mean it
_LONG_ID = compile_later(r"[0-9a-f]{64}")
_ID = r"([0-9a-f]{64})"
_RUNTIMES = (
    ("docker", ("docker-",), compile_later(rf"docker-{_ID}\.scope")),
    (
        "containerd",
        ("containerd", "nerdctl"),
        compile_later(rf"(?:.*[:-])?(?:cri-containerd|nerdctl)[:-]{_ID}(?:\.scope)?"),
    ),
    ("cri-o", ("crio-",), compile_later(rf"crio-{_ID}(?:\.scope)?")),
    ("podman", ("libpod-",), compile_later(rf"libpod-(?:payload-)?{_ID}(?:\.scope)?")),
    ("lxc", ("lxc.payload.",), compile_later(r"lxc\.payload\.(.+)")),
    (
        "machine",
        ("machine-", "systemd-nspawn@"),
        compile_later(r"(?:machine-|systemd-nspawn@)(.+)\.(?:scope|service)"),
    ),
)
"""The names of a path's components by runtime: words, of which a name has one, and its form."""

_BARE_ID = compile_later(r"[0-9a-f]{64}|[0-9a-f]{32}-\d{1,10}")
_PARENTS = {"docker": "docker", "lxc": "lxc", "lxc.payload": "lxc", "buildkit": "buildkit"}
_ELDERS = (("ecs", "ecs"), ("kubepods", "kubernetes"))
_POD = compile_later(r"pod_?([0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12}|[0-9a-f]{32,64})\b")
_UNIT = compile_later(r".\.(?:service|scope|socket|mount|swap)$")
_MANAGER = compile_later(r"user@(\d+)\.service")
_ESCAPE = compile_later(r"\\x([0-9a-f]{2})")  # systemd.unit(5), "String Escaping"


class CgroupName(NamedTuple):
    """The name of a cgroup.

    `kind` is the container's runtime ("docker", "containerd", "cri-o", "podman", "lxc",
    "kubernetes" and "ecs" where only the orchestrator is certain, "machine" of systemd-machined,
    "container" for an unknown runtime), "unit" or "slice" of systemd, or "path". `name` is the id's
    first 12 digits, the unit's name, or the path; "" in the root. `pod` begins a pod's id, or "".
    """

    kind: str
    name: str
    pod: str = ""

    @property
    def label(self) -> str:
        """`docker:0123456789ab`, `pod:9f86d081/cri-o:0123456789ab`, `nginx.service`, `/a/b`."""
        if self.kind in ("unit", "slice", "path"):
            return self.name
        return f"pod:{self.pod}/{self.kind}:{self.name}" if self.pod else f"{self.kind}:{self.name}"


@lru_cache(maxsize=4096)
def cgroup_name(text: str) -> CgroupName:
    """The name for a /proc/PID/cgroup text. Lines of another form are skipped.

    Of hierarchies that disagree, one that names a container is believed, then one with a unit:
    where both versions are mounted, processes are often sorted in one of them only. The innermost
    container counts, and a unit inside a container does not.
    """
    paths = _paths(text)
    for find in (_container, _unit):
        for path in paths:
            container = find(path)
            if container is not None:
                return container
    slices = (part for path in paths for part in reversed(path) if part.endswith(".slice"))
    last = next(slices, None)
    if last is not None:
        return CgroupName("slice", _plain(last))
    path = next((path for path in paths if path), [])
    return CgroupName("path", "".join(f"/{_shorten(part)}" for part in path))


class CgroupIds(NamedTuple):
    """The whole ids of a cgroup's container, pod and unit; "" where there is none.

    `container` has all digits of the id, `pod` is the uid as Kubernetes writes it, `unit` is
    systemd's, which is "" for a container.
    """

    container: str = ""
    pod: str = ""
    unit: str = ""


@lru_cache(maxsize=4096)
def cgroup_ids(text: str) -> CgroupIds:
    """The ids in a /proc/PID/cgroup text, of the hierarchy and depth that `cgroup_name` takes."""
    name = cgroup_name(text)
    if name.kind == "unit":
        return CgroupIds(unit=name.name)
    if name.kind in ("slice", "path"):
        return CgroupIds()
    for path in _paths(text):
        for depth in range(len(path) - 1, -1, -1):
            id_match = _LONG_ID.search(path[depth])
            if id_match is not None and id_match[0].startswith(name.name):
                pod = next(filter(None, map(_POD.search, path[: depth + 1])), None)
                uid = pod[1].replace("_", "-") if pod else ""
                return CgroupIds(id_match[0], uid)
    return CgroupIds(name.name)


def is_called(name: str, label: str, path: str = "") -> bool:
    """Return True if a person may mean a cgroup by a name.

    Args:
        name: as purebpf prints it, the first characters of a container's id, or the name of a unit
            with or without its ending.
        label: of the cgroup, as `CgroupName` has it.
        path: of the cgroup, "" if it is not known.
    """
    last = path.rpartition("/")[2]
    short = label.rpartition("/")[2]
    identifier = short.rpartition(":")[2]
    if name in {label, short, identifier, label.partition(".")[0], last}:
        return True
    whole = last.removesuffix(".scope").rpartition("-")[2]
    return len(name) >= _LEAST and whole.startswith(name)


def _paths(text: str) -> list[list[str]]:
    """The components of each path: version 2, then systemd's hierarchy, then the others."""
    ranked = []
    for line in text.split("\n"):
        number, _, rest = line.partition(":")
        controllers, colon, path = rest.partition(":")
        if colon and number.isdecimal():
            rank = 0 if number == "0" else 1 if controllers == "name=systemd" else 2
            parts = path.removesuffix(" (deleted)").split("/")
            # a cgroup namespace shows what is outside of it as `/../..`
            ranked.append((rank, [part for part in parts if part not in ("", "..")]))
    return [parts for _, parts in sorted(ranked, key=lambda entry: entry[0])]


def _container(path: list[str]) -> CgroupName | None:
    for depth in range(len(path) - 1, -1, -1):
        part = path[depth]
        for kind, words, pattern in _RUNTIMES:
            id_match = pattern.fullmatch(part) if any(word in part for word in words) else None
            if id_match is not None:
                return CgroupName(kind, _short(id_match[1]), _pod(path[: depth + 1]))
        parent = path[depth - 1] if depth else ""
        if _BARE_ID.fullmatch(part) or parent in ("lxc", "lxc.payload"):
            return CgroupName(_runtime(path[:depth], parent), _short(part), _pod(path[:depth]))
    return None


def _runtime(above: list[str], parent: str) -> str:
    """The owner of a container with only an id for a name."""
    if parent in _PARENTS:
        return _PARENTS[parent]
    for start, kind in _ELDERS:
        if any(part.startswith(start) for part in above):
            return kind
    return "container"


def _pod(path: Iterable[str]) -> str:
    for part in path:
        pod_match = _POD.search(part)
        if pod_match is not None:
            return pod_match[1][:8]
    return ""


def _unit(path: list[str]) -> CgroupName | None:
    """The innermost unit; one that a user's manager runs has the user's number before it."""
    units = [part for part in path if _UNIT.search(part)]
    if not units:
        return None
    name = _plain(units[-1])
    manager = _MANAGER.fullmatch(units[0]) if len(units) > 1 else None
    return CgroupName("unit", f"user@{manager[1]}/{name}" if manager else name)


def _short(text: str) -> str:
    return text[:_SHORT] if _BARE_ID.fullmatch(text) else _plain(text)


def _plain(name: str) -> str:
    """A unit's name as people write it."""
    return _shorten(_ESCAPE.sub(lambda escape: chr(int(escape[1], 16)), name))


def _shorten(name: str) -> str:
    return _LONG_ID.sub(lambda long_id: long_id[0][:_SHORT], name)
