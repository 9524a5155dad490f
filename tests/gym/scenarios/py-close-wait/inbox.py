import socket
import sys
import threading

server = socket.create_server(("127.0.0.1", int(sys.argv[1])), backlog=64)
kept = []


def take_mail():
    connection, _ = server.accept()
    connection.recv(1000)
    kept.append(connection)


while True:
    take_mail()
