import socket
import sys
import time

sock = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
while True:
    sock.sendall(b"*3\r\n$5\r\nLPUSH\r\n$4\r\njobs\r\n$1\r\nx\r\n")
    sock.recv(4096)
    time.sleep(3)
