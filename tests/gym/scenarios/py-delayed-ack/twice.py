import socket
import sys
import threading


def answer(peer):
    while peer.recv(4096):
        peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n")
        peer.send(b"o")
        peer.send(b"k")


server = socket.create_server(("127.0.0.1", int(sys.argv[1])))
while True:
    peer, _ = server.accept()
    threading.Thread(target=answer, args=(peer,), daemon=True).start()
