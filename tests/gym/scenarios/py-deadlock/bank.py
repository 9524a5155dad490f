"""Accounts: two locks, taken in two orders."""

import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

accounts_lock = threading.Lock()
ledger_lock = threading.Lock()
balance = 100
pool = ThreadPoolExecutor(6, thread_name_prefix="report")


def transfer_funds():
    with accounts_lock:
        time.sleep(0.3)
        with ledger_lock:
            return balance


def close_ledger():
    with ledger_lock:
        time.sleep(0.3)
        with accounts_lock:
            return balance


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        with accounts_lock:
            body = f"{balance}\n".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


for _ in range(6):
    pool.submit(len, "")
threading.Thread(target=transfer_funds, name="transfer", daemon=True).start()
threading.Thread(target=close_ledger, name="closing", daemon=True).start()
ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
