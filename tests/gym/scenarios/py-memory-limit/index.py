import sys


def scan(path):
    total = 0
    with open(path, "rb") as file:
        while block := file.read(1 << 16):
            total += block[0]
    return total


with open(sys.argv[1], "wb") as file:  # pages count for the cgroup that first used them
    for _ in range(96):
        file.write(bytes(1 << 20))
while True:
    scan(sys.argv[1])
