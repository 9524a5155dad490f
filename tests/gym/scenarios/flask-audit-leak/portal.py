from flask import Flask, jsonify, request

from audit import trail
from orders import find_orders

app = Flask(__name__)


@app.before_request
def note_request():
    trail.record(request)


@app.route("/orders/<int:customer>")
def orders(customer):
    return jsonify(find_orders(customer))
