import http.server
import logging
import logging.handlers
import os
import queue
import sys
import time

records = queue.Queue(10)


class Patient(logging.handlers.QueueHandler):
    def enqueue(self, record):
        self.queue.put(record)


class Durable(logging.FileHandler):
    def emit(self, record):
        super().emit(record)
        os.fsync(self.stream.fileno())
        time.sleep(0.02)


log = logging.getLogger("orders")
log.setLevel(logging.INFO)
log.addHandler(Patient(records))
logging.handlers.QueueListener(records, Durable(sys.argv[2])).start()


class Orders(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1

    def do_GET(self):
        log.info("order placed")
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *args):
        pass


http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Orders).serve_forever()
