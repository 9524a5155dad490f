import sys


def edit_distance(one, two):
    row = list(range(len(two) + 1))
    for at, letter in enumerate(one):
        last, row[0] = row[0], at + 1
        for n, other in enumerate(two):
            last, row[n + 1] = row[n + 1], min(row[n] + 1, row[n + 1] + 1, last + (letter != other))
    return row[-1]


WORDS = [f"word{n}" for n in range(3000)]
for line in sys.stdin:
    print(min(edit_distance(line.strip(), word) for word in WORDS))
