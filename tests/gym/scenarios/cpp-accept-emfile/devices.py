"""Devices that stay connected."""

import socket
import sys
import time

held = []
for _ in range(90):
    held.append(socket.create_connection(("127.0.0.1", int(sys.argv[1]))))
while True:
    time.sleep(1)
