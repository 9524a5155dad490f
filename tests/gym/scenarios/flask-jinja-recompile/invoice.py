from flask import Flask
from jinja2 import Environment

app = Flask(__name__)
TEXT = "".join(
    "{%% for row in rows %%}{%% if row.n > %d %%}<td class='c%d'>{{ row.name|upper }} {{ row.n }}</td>{%% endif %%}{%% endfor %%}\n" % (n, n)
    for n in range(60)
)
ROWS = [{"name": f"row {n}", "n": n} for n in range(3)]


def render_invoice():
    return Environment().from_string(TEXT).render(rows=ROWS)


@app.route("/")
def index():
    return render_invoice()
