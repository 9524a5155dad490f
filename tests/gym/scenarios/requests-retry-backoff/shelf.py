import os

import requests
from flask import Flask
from requests.adapters import HTTPAdapter
from urllib3.util.retry import Retry

app = Flask(__name__)
session = requests.Session()
session.mount("http://", HTTPAdapter(max_retries=Retry(total=6, backoff_factor=0.2, status_forcelist=[503])))


def list_items():
    return sorted(str(n * 7919 % 1000) for n in range(500))


def read_inventory(item):
    return session.get(f"http://127.0.0.1:{os.environ['INVENTORY']}/item/{item}", timeout=10).text


@app.route("/")
def shelf():
    return ",".join(list_items()) + read_inventory(4)
