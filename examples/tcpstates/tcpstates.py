"""Print how TCP connections go through their states: sudo python tcpstates.py [-P PORT]."""

from __future__ import annotations

import argparse
import socket
import sys
from contextlib import suppress
from pathlib import Path

import purebpf

# enum in include/net/tcp_states.h
STATES = (
    *("?", "ESTABLISHED", "SYN_SENT", "SYN_RECV", "FIN_WAIT1", "FIN_WAIT2", "TIME_WAIT", "CLOSE"),
    *("CLOSE_WAIT", "LAST_ACK", "LISTEN", "CLOSING", "NEW_SYN_RECV"),
)


def address(family: int, data: bytes, port: int) -> str:
    """An address and a port in one word."""
    if family == socket.AF_INET:
        return f"{socket.inet_ntop(family, data[:4])}:{port}"
    return f"[{socket.inet_ntop(family, data)}]:{port}"


def main() -> None:
    """Print until Ctrl-C."""
    parser = argparse.ArgumentParser(description="Print state changes of TCP sockets.")
    parser.add_argument("-P", "--port", type=int, help="with this local or remote port")
    options = parser.parse_args()

    columns = f"{'LOCAL':22} {'REMOTE':22} {'OLD':12} {'NEW':12}"
    print(f"{'SOCKET':16} {'PID':>7} {'COMM':16} {columns} {'MS':>9}", flush=True)
    with purebpf.load(Path(__file__).with_name("tcpstates.bpf.o")) as obj:
        obj.attach()
        with suppress(KeyboardInterrupt):
            print("attached; Ctrl-C ends", file=sys.stderr, flush=True)
            for event in obj.maps["events"].read():
                if options.port not in {None, event.local_port, event.remote_port}:
                    continue
                print(
                    f"{event.socket:016x} {event.pid:7} {event.comm:16} "
                    f"{address(event.family, event.local, event.local_port):22} "
                    f"{address(event.family, event.remote, event.remote_port):22} "
                    f"{STATES[event.old_state]:12} {STATES[event.new_state]:12} "
                    f"{event.duration_ns / 1e6:9.3f}",
                    flush=True,
                )
        print(f"lost: {obj.globals['lost']}", file=sys.stderr)


if __name__ == "__main__":
    main()
