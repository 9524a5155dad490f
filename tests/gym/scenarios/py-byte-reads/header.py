import os


def read_header(fd):
    os.lseek(fd, 0, 0)
    data = b""
    while byte := os.read(fd, 1):
        data += byte
    return data


fd = os.open("header.py", os.O_RDONLY)
while True:
    read_header(fd)
