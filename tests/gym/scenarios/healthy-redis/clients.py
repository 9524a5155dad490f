import socket
import sys
import threading
import time


def command(*words: str) -> bytes:
    parts = [f"*{len(words)}"] + [f"${len(w)}\r\n{w}" for w in words]
    return ("\r\n".join(parts) + "\r\n").encode()


def run(*words: str) -> None:
    with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as sock:
        while True:
            sock.sendall(command(*words))
            sock.recv(4000)
            time.sleep(0.01)


for _ in range(4):
    threading.Thread(target=run, args=("GET", "x"), daemon=True).start()
time.sleep(600)
