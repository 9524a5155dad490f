import os
import sys
import time

while True:
    time.sleep(1.5)
    open(sys.argv[1], "w").close()
    time.sleep(0.004)
    os.unlink(sys.argv[1])
