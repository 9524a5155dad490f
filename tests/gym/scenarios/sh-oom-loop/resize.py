import time

pages = []
while True:
    pages.append(bytearray(4 << 20))
    time.sleep(0.05)
