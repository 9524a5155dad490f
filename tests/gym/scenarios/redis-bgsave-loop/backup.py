import socket
import sys
import time

connection = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
connection.sendall(b"DEBUG POPULATE 400000 key 100\r\n")
connection.recv(100)
while True:
    connection.sendall(b"BGSAVE\r\n")
    connection.recv(1000)
    for n in range(3000):
        connection.sendall(b"SET key:%d %b\r\n" % (n * 97 % 400000, b"y" * 100))
        connection.recv(100)
    time.sleep(0.1)
