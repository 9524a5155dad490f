"""Counts metrics that come by UDP."""

import socket
import sys

counts = {}
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sock.bind(("127.0.0.1", int(sys.argv[1])))
while True:
    data = sock.recv(512)
    name, _, value = data.partition(b":")
    counts[name] = counts.get(name, 0) + int(value.partition(b"|")[0])
