import http.server
import json
import sys

callbacks = []


def parse_feed(number):
    return json.loads(
        json.dumps({"entries": [{"id": number + n, "title": "t" * 60} for n in range(120)]})
    )


def subscribe(number):
    feed = parse_feed(number)

    def on_change():
        return len(feed["entries"])

    callbacks.append(on_change)
    return on_change()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = str(subscribe(len(callbacks))).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
