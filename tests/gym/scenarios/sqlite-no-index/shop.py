import sqlite3
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

with sqlite3.connect(sys.argv[2]) as setup:
    setup.execute("create table orders(id integer primary key, customer int, item text)")
    rows = ((n % 90_001, f"item {n} " * 4) for n in range(200_000))
    setup.executemany("insert into orders(customer, item) values (?, ?)", rows)


def find_orders(customer):
    connection = sqlite3.connect(sys.argv[2])
    try:
        return connection.execute("select * from orders where customer = ?", (customer,)).fetchall()
    finally:
        connection.close()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        body = b"%d" % len(find_orders(int(self.path[1:]) % 90_001))
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
