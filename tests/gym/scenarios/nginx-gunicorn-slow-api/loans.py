from flask import Flask, jsonify

from credit import bureau

app = Flask(__name__)


def rate_for(score):
    return round(2.0 + 20 / (1 + score), 2)


@app.route("/loan/<int:customer>")
def loan(customer):
    return jsonify(rate=rate_for(bureau.score(customer)))
