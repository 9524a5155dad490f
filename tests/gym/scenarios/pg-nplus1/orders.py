import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import psycopg2

local = threading.local()


def line_of(cursor, number):
    cursor.execute("select name from line where id = %s", (number,))
    return cursor.fetchone()[0]


def order_page():
    if not hasattr(local, "connection"):
        local.connection = psycopg2.connect("")
    with local.connection.cursor() as cursor:
        lines = [line_of(cursor, number) for number in range(1, 301)]
    local.connection.rollback()
    return " ".join(lines)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        body = order_page().encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
