import copy

from flask import Flask

app = Flask(__name__)
SETTINGS = {f"plan{n}": {"limits": list(range(20)), "names": {"en": f"Plan {n}", "de": f"Tarif {n}"}} for n in range(300)}


def load_settings():
    return copy.deepcopy(SETTINGS)


@app.route("/plan")
def plan():
    return load_settings()["plan7"]
