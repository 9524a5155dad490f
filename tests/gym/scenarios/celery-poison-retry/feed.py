def parse_line(line):
    number, _, price = line.partition(";")
    return int(number), float(price)


def parse_feed(text):
    return [parse_line(line) for line in text.splitlines()]
