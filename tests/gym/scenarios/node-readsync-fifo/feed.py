import sys
import time

while True:
    with open(sys.argv[1], "w") as pipe:
        pipe.write("7.5")
    time.sleep(0.25)
