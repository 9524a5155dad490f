from flask import Flask, jsonify

from catalogue import catalogue

app = Flask(__name__)


def decorate(rows):
    return [{"id": number, "name": name.title()} for number, name in rows]


@app.route("/search/<words>")
def search_page(words):
    return jsonify(decorate(catalogue.search(words)))
