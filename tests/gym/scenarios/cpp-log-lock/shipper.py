import ctypes
import os
import time

ctypes.CDLL(None).prctl(15, b"log-shipper", 0, 0, 0)
while os.read(0, 2048):
    time.sleep(0.12)
