import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from sqlalchemy import create_engine, text

engine = create_engine("postgresql+psycopg2://", pool_size=1, max_overflow=1, pool_timeout=60)


def daily_report():
    with engine.connect() as connection:
        return connection.execute(text("select pg_sleep(0.3)")).all()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        body = str(daily_report()).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
