import ctypes

ctypes.CDLL(None).prctl(15, b"munge", 0, 0, 0)
while True:
    sum(range(100000))
