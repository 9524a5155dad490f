import http.server
import sys
import threading


def tokens(text):
    for word in text.split():
        yield sum(ord(letter) * 31 for letter in word) % 4093


class Index:
    def reindex(self):
        while True:
            self.postings = {
                token: True for token in tokens("brown fox jumps over lazy dogs " * 400)
            }


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        total = 0
        for step in range(20000):
            total += step
        body = str(total).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


threading.Thread(target=Index().reindex, daemon=True).start()
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
