import socket
import sys
import threading
import time

sock = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
sock.sendall(b"EVAL \"for i = 1, 250000 do redis.call('SET', 'session:' .. i, i) end\" 0\r\n")
sock.recv(100)


def run(line, pause):
    with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as sock:
        while True:
            sock.sendall(line)
            sock.recv(4000)
            time.sleep(pause)


threading.Thread(target=run, args=(b"KEYS user:*:cart\r\n", 0.02), daemon=True).start()
for _ in range(4):
    threading.Thread(target=run, args=(b"GET session:7\r\n", 0.02), daemon=True).start()
time.sleep(600)
