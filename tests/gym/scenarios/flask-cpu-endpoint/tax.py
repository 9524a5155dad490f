def bracket_of(price, brackets):
    for low, high, rate in brackets:
        if low <= price < high:
            return rate
    return 0.19


def build_brackets(n):
    return [(i * 0.05, (i + 1) * 0.05, 0.07 + i % 3 * 0.04) for i in range(n)]


def invoice_lines(items):
    lines = []
    for item in items:
        brackets = build_brackets(900)  # for each line anew
        lines.append(
            {"name": item["name"], "net": item["price"], "tax": bracket_of(item["price"], brackets)}
        )
    return lines
