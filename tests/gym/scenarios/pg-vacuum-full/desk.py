import random
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import psycopg2

own = threading.local()


def find_ticket():
    if not hasattr(own, "connection"):
        own.connection = psycopg2.connect(host="127.0.0.1", port=int(sys.argv[2]), user="postgres", dbname="shop")
        own.connection.autocommit = True
    with own.connection.cursor() as cursor:
        cursor.execute("select note from tickets where id = %s", (random.randint(1, 60000),))
        return cursor.fetchone()[0]


class Desk(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        body = find_ticket().encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Desk).serve_forever()
