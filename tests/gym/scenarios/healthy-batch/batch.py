import time
import zlib

data = bytes(range(256)) * 4000
while True:
    zlib.compress(data, 6)
    time.sleep(0.002)
