"""A name server that answers late: after 700 ms."""

import ctypes, heapq, select, socket, sys, time

ctypes.CDLL(None).prctl(15, b"resolver", 0, 0, 0)
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sock.bind((sys.argv[1], 53))
late = []
while True:
    wait = max(0, late[0][0] - time.monotonic()) if late else None
    if select.select([sock], [], [], wait)[0]:
        data, who = sock.recvfrom(512)
        heapq.heappush(late, (time.monotonic() + 0.7, data, who))
    while late and late[0][0] <= time.monotonic():
        _, data, who = heapq.heappop(late)
        end = 12
        while data[end]:
            end += data[end] + 1
        end += 5
        kind = data[end - 4 : end - 2]
        has = kind == b"\0\1"
        answer = b"\xc0\x0c\0\1\0\1\0\0\0\0\0\4\x7f\0\0\1" if has else b""
        sock.sendto(
            data[:2]
            + b"\x81\x80\0\1"
            + (b"\0\1" if has else b"\0\0")
            + b"\0\0\0\0"
            + data[12:end]
            + answer,
            who,
        )
