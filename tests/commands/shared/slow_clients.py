"""Connect to an address again and again, and send requests byte by byte that never end.

    python slow_clients.py PORT CONNECTIONS

Runs until its standard input ends, and prints a line once it has tried to have so many.
"""

from __future__ import annotations

import resource
import select
import socket
import sys
import time


def main(port: int, wanted: int) -> None:
    """Keep `wanted` connections open, or try to."""
    limit = min(wanted + 100, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    alive: set[socket.socket] = set()
    tried, since = 0, time.monotonic()
    while not select.select([sys.stdin], [], [], 0.002)[0]:
        if len(alive) < wanted:
            connection = socket.socket()
            connection.settimeout(2)
            try:
                connection.connect(("127.0.0.1", port))
                connection.send(b"GET / HTTP/1.1\r\nX: ")
                alive.add(connection)
            except OSError:
                connection.close()
            tried += 1
            if tried == wanted:
                print("tried", flush=True)
        if time.monotonic() - since > 1:
            since = time.monotonic()
            for connection in list(alive):
                try:
                    connection.send(b"a")
                except OSError:
                    connection.close()
                    alive.discard(connection)


main(int(sys.argv[1]), int(sys.argv[2]))
