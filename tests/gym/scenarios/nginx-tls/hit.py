import socket
import ssl
import sys
import threading
import time

context = ssl.create_default_context()
context.check_hostname, context.verify_mode = False, ssl.CERT_NONE


def run():
    while True:
        try:
            with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as plain:
                with context.wrap_socket(plain) as tls:
                    tls.sendall(b"GET / HTTP/1.0\r\n\r\n")
                    tls.recv(4096)
        except OSError:
            time.sleep(0.05)


for _ in range(6):
    threading.Thread(target=run, daemon=True).start()
time.sleep(600)
