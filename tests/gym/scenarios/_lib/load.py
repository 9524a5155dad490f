"""load.py URL RATE CLIENTS TIMEOUT: requests in closed loops, at most RATE a second in all."""

import ctypes
import http.client
import sys
import threading
import time
from urllib.parse import urlsplit

ctypes.CDLL(None).prctl(15, b"loadgen", 0, 0, 0)
url, rate, clients, timeout = (
    urlsplit(sys.argv[1]),
    float(sys.argv[2]),
    int(sys.argv[3]),
    float(sys.argv[4]),
)
path = (url.path or "/") + (f"?{url.query}" if url.query else "")


def run(number: int) -> None:
    pause = clients / rate
    connection = None
    due = time.monotonic() + pause * number / clients
    n = 0
    while True:
        time.sleep(max(0, due - time.monotonic()))
        due = max(due + pause, time.monotonic())
        n += 1
        try:
            if connection is None:
                connection = http.client.HTTPConnection(url.hostname, url.port, timeout=timeout)
            connection.request("GET", path.replace("%N%", str(number * 100003 + n)))
            response = connection.getresponse()
            response.read()
            if response.will_close:
                connection = None
        except Exception:
            connection = None
            time.sleep(0.05)


for number in range(clients):
    threading.Thread(target=run, args=(number,), daemon=True).start()
threading.Event().wait()
