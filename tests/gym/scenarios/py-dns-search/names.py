import socket
import time

server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(("127.0.0.88", 53))
while True:
    question, client = server.recvfrom(512)
    time.sleep(0.008)
    server.sendto(question[:2] + b"\x81\x83" + question[4:6] + bytes(6) + question[12:], client)
