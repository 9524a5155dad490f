import os
import sys
import time

log = os.open(sys.argv[1], os.O_RDONLY)
while True:
    lines = os.read(log, 2000)
    time.sleep(0.1)
