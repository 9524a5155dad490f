import sys


def make_rows():
    number = 0
    while True:
        number += 1
        sys.stdout.write(f"row {number} {'x' * 2000}\n")
        sys.stdout.flush()


make_rows()
