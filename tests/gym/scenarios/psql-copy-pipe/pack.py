import sys
import time

while lines := sys.stdin.buffer.read1(8000):
    time.sleep(0.01)
