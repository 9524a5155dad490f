import mailbox
import sys
import threading
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

turn = threading.Lock()
box = mailbox.Maildir(sys.argv[2])


def keep_message(text):
    message = EmailMessage()
    message["Subject"] = "order"
    message.set_content(text * 50)
    with turn:
        box.add(message)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        keep_message("one book\n")
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *args):
        pass


class Server(ThreadingHTTPServer):
    request_queue_size = 64


Server(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
