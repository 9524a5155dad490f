"""Lookups that wait for a resolver, by their sockets."""

from __future__ import annotations

from purebpf.findings.facts import Facts, Process, Socket
from purebpf.findings.find import find

GO = Process(7, 1, "rates", "/srv/rates")


def asking(*, share: float, port: int = 53, many: int = 30) -> Facts:
    """Sockets of one program to a resolver; the last four of them are open at the end."""
    sockets = tuple(
        Socket(inode, "udp", "127.0.0.1", 40_000 + inode, "10.0.0.2", port, 1, share=share)
        for inode in range(1, many + 1)
    )
    links = {fd: f"socket:[{many - fd}]" for fd in range(4)}
    return Facts(10.0, 2, processes=(GO,), sockets=sockets, descriptors={7: links})


def test_sockets_that_live_long_are_lookups_without_an_answer() -> None:
    (finding,) = find(asking(share=0.2))
    assert finding.kind == "dns"
    assert "waits for DNS: 3.0 lookups at a time have no answer of 10.0.0.2:53" in finding.text
    assert finding.evidence == ("30 UDP sockets in all, which lived 2.0 s each",)
    assert finding.command == ("tcp", "--dns", "-p", "7")


def test_quick_lookups_other_ports_and_a_socket_that_is_kept_are_none() -> None:
    assert find(asking(share=0.001)) == []
    assert find(asking(share=0.2, port=514)) == []
    assert find(asking(share=1.0, many=4)) == []
