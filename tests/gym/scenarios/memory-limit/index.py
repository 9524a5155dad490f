import sys


def scan(path):
    total = 0
    with open(path, "rb") as file:
        while block := file.read(1 << 16):
            total += block[0]
    return total


while True:
    scan(sys.argv[1])
