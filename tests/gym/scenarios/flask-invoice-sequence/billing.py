import os

from flask import Flask, jsonify

from numbers_file import Sequence

app = Flask(__name__)
sequence = Sequence(os.environ["SEQUENCE"])


def price(items):
    return sum(n * 1.19 for n in range(items))


@app.route("/invoice/<int:items>")
def invoice(items):
    return jsonify(number=sequence.next_number(), total=price(items % 50))
