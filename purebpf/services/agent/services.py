"""Finds the service of a process, without asking any API. Pure but for reading names of logs.

Kubernetes' kubelet names the folders of logs NAMESPACE_POD_UID/CONTAINER and links to the files
POD_NAMESPACE_CONTAINER-ID.log (kubernetes: pkg/kubelet/kuberuntime/helpers.go, legacy.go); the
cgroup of a container has the same uid and id.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import NamedTuple

from purebpf.results.formats.otlp import Attribute
from purebpf.results.model.spelling import printable
from purebpf.services.agent.config import Rule
from purebpf.services.agent.name_shares import OTHER, NameShares
from purebpf.symbols.cgroup_names import CgroupIds, cgroup_ids

__all__ = ["PodNames", "Process", "Services", "pod_owner"]

_HASH = "[bcdfghjklmnpqrstvwxz2456789]"
"""What Kubernetes makes generated names of (apimachinery, pkg/util/rand)."""
_SUFFIX = re.compile(rf"-{_HASH}{{6,10}}-{_HASH}{{5}}$|-{_HASH}{{5}}$|-\d+$")
_LINK = re.compile(r"(.+)_([^_]+)_(.+)-([0-9a-f]{64})\.log")
_FOLDER = re.compile(r"([^_]+)_(.+)_([0-9a-f-]{32,36})")
_GROUP = re.compile(r"\\(\d)")


class Process(NamedTuple):
    """The facts about a process; "" where unknown."""

    comm: str
    cgroup: str = ""
    exe: str = ""
    build_id: str = ""


class _Pod(NamedTuple):
    namespace: str
    name: str
    container: str = ""


class PodNames:
    """Names of pods and containers, from the names of their logs.

    Args:
        root: the folder with `pods` and `containers`, which is /var/log.
    """

    def __init__(self, root: str) -> None:
        self._root = root
        self._by_uid: dict[str, _Pod] = {}
        self._by_container: dict[str, _Pod] = {}

    def read(self) -> None:
        """Read the present names; names of gone pods are forgotten."""
        self._by_uid, self._by_container = {}, {}
        for name in self._list("pods"):
            if folder := _FOLDER.fullmatch(name):
                self._by_uid[folder[3]] = _Pod(folder[1], folder[2])
            elif re.fullmatch(r"[0-9a-f-]{32,36}", name):  # old kubelets: the uid alone
                self._by_uid[name] = _Pod("", name)
        for name in self._list("containers"):
            if link := _LINK.fullmatch(name):
                self._by_container[link[4]] = _Pod(link[2], link[1], link[3])

    def find(self, ids: CgroupIds) -> _Pod | None:
        """The pod of a cgroup; None if it has none, or its logs have no names."""
        return self._by_container.get(ids.container) or self._by_uid.get(ids.pod)

    def _list(self, folder: str) -> Iterable[str]:
        with suppress(OSError):
            return os.listdir(os.path.join(self._root, folder))
        return ()


def pod_owner(pod: str) -> str:
    """The Deployment, DaemonSet, Job or StatefulSet that a pod is named after."""
    return _SUFFIX.sub("", pod)


class Services:
    """Gives each process the attributes of its service.

    Args:
        rules: of the configuration.
        labels: of every service.
        host: the machine's name.
        pods: names of pods.
    """

    def __init__(
        self,
        rules: Sequence[Rule],
        labels: Iterable[tuple[str, str]],
        host: str,
        pods: PodNames | None = None,
    ) -> None:
        self._rules = [
            (rule.name, [(field, re.compile(pattern)) for field, pattern in _patterns(rule)])
            for rule in rules
        ]
        self._labels = tuple(labels)
        self._host = printable(host)
        self._pods = pods

    def resource(self, process: Process) -> tuple[Attribute, ...]:
        """OpenTelemetry's resource attributes of a process, "service.name" first.

        The service is the first of: a rule, the pod's owner and the container, systemd's unit, the
        container's id, the process's name. Programs choose their names and paths of cgroups: bytes
        that are not text, or move a cursor, are `?`.
        """
        ids = cgroup_ids(process.cgroup)
        pod = self._pods.find(ids) if self._pods and (ids.pod or ids.container) else None
        name = self._by_rule(process)
        if not name and pod is not None:
            name = "/".join(filter(None, (pod_owner(pod.name), pod.container)))
        name = name or ids.unit or ids.container[:12] or process.comm
        pairs = (
            ("service.name", name),
            ("service.version", process.build_id[:12]),
            ("host.name", self._host),
            ("k8s.namespace.name", pod.namespace if pod else ""),
            ("k8s.pod.name", pod.name if pod else ""),
            ("k8s.pod.uid", ids.pod),
            ("k8s.container.name", pod.container if pod else ""),
            ("container.id", ids.container),
            ("systemd.unit", ids.unit),
            *self._labels,
        )
        return tuple((key, printable(value)) for key, value in pairs if value)

    def admit(
        self, shares: NameShares, resource: tuple[Attribute, ...], user: int
    ) -> tuple[Attribute, ...]:
        """Return the attributes of a service, or of `other`, if a user has too many."""
        if shares.admit(resource, user):
            return resource
        return (("service.name", OTHER), ("host.name", self._host), *self._labels)

    def nothing(self) -> tuple[Attribute, ...]:
        """The attributes of a window without any work."""
        return (("service.name", ""), ("host.name", self._host), *self._labels)

    def _by_rule(self, process: Process) -> str:
        for name, patterns in self._rules:
            matches = [pattern.search(getattr(process, field)) for field, pattern in patterns]
            if matches[0] is not None and all(matches):
                return _fill_in(name, ("", *matches[0].groups("")))
        return ""


def _fill_in(name: str, groups: Sequence[str]) -> str:
    """A name with the groups of a pattern; those that it does not have are empty."""
    return _GROUP.sub(lambda digit: (*groups, *[""] * 9)[int(digit[1])], name)


def _patterns(rule: Rule) -> list[tuple[str, str]]:
    pairs = (("cgroup", rule.cgroup), ("comm", rule.comm), ("exe", rule.exe))
    return [(field, pattern) for field, pattern in pairs if pattern]
