import os
import queue
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
import sys

import psycopg2

pool = queue.LifoQueue()
for _ in range(2):
    pool.put(psycopg2.connect(""))


def rent_connection():
    return pool.get()


def find_orders():
    connection = rent_connection()
    try:
        with connection.cursor() as cursor:
            cursor.execute("select pg_sleep(0.15)")
    finally:
        pool.put(connection)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        find_orders()
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *args):
        pass


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
