import sys
import time

for line in sys.stdin:
    time.sleep(0.02)
