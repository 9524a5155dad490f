"""Clients that wait for events instead of answers: of a queue, a subscription, a long poll. Pure.

A consumer asks a broker for its next job, and the broker answers when there is one. On the wire,
this looks like a slow answer; the broker has nothing to do meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence

from purebpf.findings.evidence import Evidence, Stay, seconds_of
from purebpf.findings.facts import Endpoint
from purebpf.findings.ownership import is_interpreter

__all__ = ["await_events", "has_nothing_to_do", "is_idle_broker"]

_WHOLE = 0.9
"""The part of a measurement that a wait lasts which began before it and goes on."""
_BROKERS = frozenset(
    {
        *("redis-server", "valkey-server", "keydb-server", "dragonfly", "beam.smp", "nats-server"),
        *("mosquitto", "beanstalkd", "gearmand", "nsqd", "etcd"),
    }
)
"""Servers, by process name, that hold a request until there is something to tell."""
_PORTS = frozenset({6379, 26379, 5672, 5671, 9092, 4222, 1883, 8883, 61613, 61616, 11300, 4730})
"""Their usual ports, for brokers on other hosts."""
_LONG_S = 0.3
"""Answers of a broker on another host that take longer are no answers to questions."""
_IDLE = 0.5
_WAITS = frozenset({"epoll", "poll", "cond", "sleep"})
_STOPPED = frozenset("TtD")


def await_events(evidence: Evidence, stays: Sequence[Stay]) -> bool:
    """Return True if these waits of a client's side are for something to do.

    Code that a framework called for a request waits for an answer.
    """
    if any(stay.is_called for stay in stays):
        return False
    if all(_is_at_home(evidence, stay) for stay in stays):
        return True
    each_s = seconds_of(stays) / max(1, sum(stay.times for stay in stays))
    return all(is_idle_broker(evidence, stay.endpoint, each_s) for stay in stays)


def _is_at_home(evidence: Evidence, stay: Stay) -> bool:
    """Return True for a wait that lasts all the time, in a thread that no request needs."""
    if not stay.is_open or stay.seconds < _WHOLE * evidence.elapsed_s:
        return False
    is_scripted = is_interpreter(evidence.process(stay.pid).exe)
    return is_scripted or not evidence.connections.is_service((stay.pid,))


def is_idle_broker(evidence: Evidence, endpoint: Endpoint, each_s: float) -> bool:
    """Return True if the peer of a connection is a broker that has nothing to do.

    Args:
        evidence: of both.
        endpoint: of the client.
        each_s: the mean length of its waits.
    """
    servers = evidence.connections.servers_of(endpoint)
    if not servers:
        return endpoint.port in _PORTS and each_s > _LONG_S
    return all(has_nothing_to_do(evidence, pid) for pid in servers)


def has_nothing_to_do(evidence: Evidence, pid: int) -> bool:
    """Return True for a broker whose main thread waits for requests most of the time."""
    process = evidence.process(pid)
    if process.comm not in _BROKERS or process.state in _STOPPED:
        return False
    idle_s = seconds_of(
        stay for stay in evidence.by_thread.get(pid, ()) if stay.kind in _WAITS and not stay.is_work
    )
    return idle_s > _IDLE * evidence.elapsed_s
