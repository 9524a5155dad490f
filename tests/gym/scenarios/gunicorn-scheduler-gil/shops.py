from flask import Flask, jsonify

from scheduler import Scheduler
from stats import rebuild_histogram

app = Flask(__name__)
scheduler = Scheduler()
scheduler.every(0.02, rebuild_histogram)
scheduler.start()


def lookup(number):
    return {"number": number, "open": number % 3 == 0}


@app.route("/shop/<int:number>")
def shop(number):
    return jsonify(lookup(number))
