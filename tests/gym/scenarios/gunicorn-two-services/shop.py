import os

import requests
from flask import Flask

app = Flask(__name__)
session = requests.Session()


@app.route("/hello")
def hello():
    return "hello"


@app.route("/account")
def account():
    return session.get(os.environ["LEDGER"] + "/statement", timeout=30).text
