import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import psycopg2


def place_order(item):
    connection = psycopg2.connect("")
    with connection, connection.cursor() as cursor:
        cursor.execute("insert into orders(item) values (%s) returning id", (item,))
        number = cursor.fetchone()[0]
    connection.close()
    return number


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        body = str(place_order(7)).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
