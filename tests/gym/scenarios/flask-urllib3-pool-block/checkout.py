from flask import Flask, jsonify

from tax_client import client

app = Flask(__name__)


def sum_of(items):
    return sum(19.9 + n for n in range(items))


@app.route("/checkout/<int:items>")
def checkout(items):
    net = sum_of(items % 30)
    return jsonify(net=net, gross=net * (1 + client.rate("ch") / 100))
