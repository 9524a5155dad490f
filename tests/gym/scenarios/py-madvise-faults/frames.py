import mmap

PAGES = 4000
buffer = mmap.mmap(-1, PAGES * 4096)


def render_frame(number):
    for page in range(PAGES):
        buffer[page * 4096] = number & 0xFF
    buffer.madvise(mmap.MADV_DONTNEED)


number = 0
while True:
    number += 1
    render_frame(number)
