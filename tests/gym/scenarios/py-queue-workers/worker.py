import http.client
import os
import socket
import sys


def take_job(sock):
    sock.sendall(b"*3\r\n$5\r\nBRPOP\r\n$4\r\njobs\r\n$1\r\n0\r\n")
    return sock.recv(4096)


def send_mail():
    connection = http.client.HTTPConnection("127.0.0.1", int(sys.argv[2]))
    connection.request("GET", "/")
    connection.getresponse().read()


for _ in range(3):
    if os.fork() == 0:
        sock = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
        while True:
            take_job(sock)
            send_mail()
os.wait()
