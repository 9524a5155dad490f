import os
import sys

text = b"x" * 4000


def save_message(fd: int) -> None:
    os.write(fd, text)
    os.fsync(fd)


fd = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
while True:
    save_message(fd)
    if os.fstat(fd).st_size > 1 << 24:
        os.ftruncate(fd, 0)
