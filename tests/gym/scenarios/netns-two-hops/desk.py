import os

import requests
from flask import Flask

app = Flask(__name__)


@app.route("/")
def index():
    return requests.get(os.environ["SLOTS"], timeout=30).text
