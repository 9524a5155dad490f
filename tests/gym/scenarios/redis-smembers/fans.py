import socket
import sys
import threading
import time


def ask(connection, *words):
    text = b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words)
    connection.sendall(text)


connection = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
for start in range(0, 100_000, 1000):
    for key in (b"followers", b"readers"):
        ask(connection, b"SADD", key, *(b"user:%d" % n for n in range(start, start + 1000)))
        connection.recv(100)


def count_common():
    mine = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
    while True:
        ask(mine, b"SINTERCARD", b"2", b"followers", b"readers")
        mine.recv(100)
        time.sleep(0.05)


threading.Thread(target=count_common, daemon=True).start()


def read_session():
    mine = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
    while True:
        ask(mine, b"GET", b"session")
        mine.recv(100)
        time.sleep(0.01)


for _ in range(4):
    threading.Thread(target=read_session, daemon=True).start()
threading.Event().wait()
