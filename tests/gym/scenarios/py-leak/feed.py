"""A feed; recent answers are kept for the case that they are asked for again."""

import json
from flask import Flask, Response

app = Flask(__name__)
recent = {}


def compose(number):
    return {
        "number": number,
        "items": [{"id": i, "text": f"item {i} of {number}"} for i in range(60)],
    }


def remember_answer(number, answer):
    recent[number] = answer  # each number comes once


@app.get("/feed/<int:number>")
def feed(number):
    answer = compose(number)
    remember_answer(number, answer)
    return Response(json.dumps(answer), mimetype="application/json")
