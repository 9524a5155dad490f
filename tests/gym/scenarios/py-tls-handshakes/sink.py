import socket
import ssl
import sys

context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[2], sys.argv[3])
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])), backlog=64)
while True:
    plain, _ = listener.accept()
    try:
        with context.wrap_socket(plain, server_side=True) as client:
            client.recv(4096)
            client.sendall(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
    except OSError:
        pass
