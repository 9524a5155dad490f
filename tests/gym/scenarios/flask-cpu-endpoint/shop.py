"""A shop: four endpoints behind gunicorn."""

import json
import tax
from flask import Flask, jsonify, request

app = Flask(__name__)
PRODUCTS = [
    {"id": i, "name": f"thing {i}", "price": 3 + i % 40, "tags": [f"t{i % 7}", f"t{i % 11}"]}
    for i in range(80)
]


@app.get("/")
def index():
    return "shop\n"


@app.get("/products")
def products():
    return jsonify(PRODUCTS)


@app.get("/search")
def search():
    word = request.args.get("q", "t3")
    return jsonify([p for p in PRODUCTS if word in p["tags"]])


@app.get("/invoice/<int:number>")
def invoice(number):
    items = [PRODUCTS[(number + i) % 80] for i in range(40)]
    return json.dumps({"number": number, "lines": tax.invoice_lines(items)})
