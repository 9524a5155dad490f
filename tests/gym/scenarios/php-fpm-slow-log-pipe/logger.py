import os
import sys
import time

log = os.open(sys.argv[1], os.O_RDWR)
while True:
    os.read(log, 2000)
    time.sleep(0.05)
