import os
import threading


class Sequence:
    """Invoice numbers without holes, also after a crash."""

    def __init__(self, path):
        self._lock = threading.Lock()
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        self._last = 0

    def next_number(self):
        with self._lock:
            self._last += 1
            os.pwrite(self._fd, b"%12d" % self._last, 0)
            self._persist()
            return self._last

    def _persist(self):
        for _ in range(6):
            os.pwrite(self._fd, b"." * 4096, 4096)
            os.fsync(self._fd)
