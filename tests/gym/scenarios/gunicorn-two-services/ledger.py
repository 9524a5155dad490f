from flask import Flask

app = Flask(__name__)


def build_statement(months):
    lines = []
    for month in range(months):
        for day in range(1, 29):
            total = sum((day * number) % 97 for number in range(120))
            lines.append(f"{month:04}-{day:02} {total:>12}")
    return "\n".join(lines)


@app.route("/statement")
def statement():
    return build_statement(1200)[-200:]
