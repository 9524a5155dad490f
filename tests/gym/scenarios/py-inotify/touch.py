import sys
import time

while True:
    for number in range(40):
        with open(f"{sys.argv[1]}/f{number}", "w") as file:
            file.write("x")
        time.sleep(0.0005)
