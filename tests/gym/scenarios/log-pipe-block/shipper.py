"""Ships a log elsewhere, slowly."""

import ctypes, sys, time

ctypes.CDLL(None).prctl(15, b"log-shipper", 0, 0, 0)
for line in sys.stdin:
    time.sleep(0.01)
