"""Two name servers: the first one takes questions and says nothing, the second one answers."""

import select
import socket
import struct

first, second = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
first.bind(("127.0.0.61", 53))
second.bind(("127.0.0.62", 53))
while True:
    for ready in select.select([first, second], [], [])[0]:
        data, peer = ready.recvfrom(2048)
        if ready is first:
            continue
        end = data.index(b"\0", 12) + 5
        is_a = data[end - 4 : end - 2] == b"\0\1"
        head = data[:2] + struct.pack(">HHHHH", 0x8180, 1, int(is_a), 0, 0)
        answer = b"\xc0\x0c\0\1\0\1" + struct.pack(">IH", 1, 4) + b"\x7f\0\0\1" if is_a else b""
        ready.sendto(head + data[12:end] + answer, peer)
