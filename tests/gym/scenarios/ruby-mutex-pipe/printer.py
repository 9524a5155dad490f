import os
import sys
import time

pipe = os.open(sys.argv[1], os.O_RDWR)
while os.read(pipe, 6000):
    time.sleep(0.1)
