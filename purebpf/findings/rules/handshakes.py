"""TLS handshakes of connections that are opened again and again. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from purebpf.findings.evidence import Evidence, Stay
from purebpf.findings.finding import Finding
from purebpf.findings.words import call_site, chief, share, spell_address
from purebpf.late_pattern import compile_later

__all__ = ["tls_handshakes"]

_CPUS, _PART = 0.1, 0.3
"""CPUs that handshakes take, and the part of the program's CPU time."""
_RATE = 5.0
"""Connections a second."""
_HANDSHAKE = compile_later(
    r"SSL_(do_handshake|connect|accept)$|state_machine(\.part\.\d+)?$|ossl_statem_|tls_(construct|process)_\w"
    r"|tls_(post_)?process_|gnutls_handshake|mbedtls_ssl_handshake|PR_ForceHandshake"
    r"|crypto/tls\.\(\*Conn\)\.((client|server)?[hH]andshake)|SSLSocket\.do_handshake"
    r"|sun\.security\.ssl\.\w*Handshake|.*rustls::\w+::hs::"
)
_ACCEPTS = ("accept", "accept4")
_DIALS = ("connect", "ClientRequest", "createConnection", "Dial")
"""Parts of names of functions that open connections."""


def tls_handshakes(evidence: Evidence) -> Iterator[Finding]:
    """Much of a program's CPU time goes to handshakes: nobody keeps its connections."""
    families: dict[tuple[str, str], list[Stay]] = defaultdict(list)
    for stay in evidence.cpu:
        families[evidence.family(stay.pid)].append(stay)
    for stays in families.values():
        shaking = [
            stay for stay in stays if any(_HANDSHAKE.match(frame.name) for frame in stay.user)
        ]
        cost, whole = evidence.rate(shaking), evidence.rate(stays)
        if cost < _CPUS or cost < _PART * whole:
            continue
        pids = chief(shaking)
        opened = _opened(evidence, pids)
        rate = max(opened.total(), evidence.count_calls(pids, _ACCEPTS, 0)) / evidence.elapsed_s
        if rate < _RATE:
            continue
        (address, port), times = opened.most_common(1)[0] if opened else (("", 0), 0)
        is_client = times >= rate * evidence.elapsed_s / 2
        yield Finding(
            *("tls-handshakes", evidence.process(pids[0]).comm, pids, cost),
            f"spends {cost:.2f} CPUs ({share(cost, whole)} of its own) on TLS handshakes: "
            f"{rate:.0f} new connections a second"
            + (f" to {spell_address(address, port)}" if is_client else ""),
            (
                _opener(evidence, pids) if is_client else _client(evidence, pids),
                "connections that are kept (keep-alive, a pool) or resumed sessions need none",
            ),
            ("tcp", "--summary", "-p", str(pids[0])),
            place=spell_address(address, port) if is_client else "",
        )


def _opened(evidence: Evidence, pids: tuple[int, ...]) -> Counter[tuple[str, int]]:
    """The connections that processes have opened, by peer."""
    opened: Counter[tuple[str, int]] = Counter()
    for one in evidence.facts.connects:
        if one.pid in pids and not one.error:
            opened[one.address, one.port] += one.times
    return opened


def _opener(evidence: Evidence, pids: tuple[int, ...]) -> str:
    """A clause about the own function that opens connections."""
    weights: Counter[str] = Counter()
    for pid in pids:
        for stay in evidence.by_process.get(pid, ()):
            if stay.own is not None and any(
                word in frame.name for frame in stay.user for word in _DIALS
            ):
                weights[evidence.spell(stay.own)] += round(1e6 * stay.seconds)
    name = weights.most_common(1)[0][0] if weights else call_site(evidence, pids, "connect")
    return f"in {name}" if name else ""


def _client(evidence: Evidence, pids: tuple[int, ...]) -> str:
    """A clause about the program of this machine that opens most connections to a server."""
    ports = {port for port, owners in evidence.connections.listeners.items() if owners & set(pids)}
    clients: Counter[int] = Counter()
    for one in evidence.facts.connects:
        if one.port in ports and one.pid in evidence.processes and one.pid not in pids:
            clients[one.pid] += one.times
    if not clients:
        return ""
    pid, times = clients.most_common(1)[0]
    where = _opener(evidence, (pid,))
    rate = times / evidence.elapsed_s
    return f"{evidence.name(pid)} opens {rate:.0f} of them" + (f" {where}" if where else "")
