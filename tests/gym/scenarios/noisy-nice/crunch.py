import ctypes
import os

ctypes.CDLL(None).prctl(15, b"crunch", 0, 0, 0)
while True:
    sum(range(100000))
