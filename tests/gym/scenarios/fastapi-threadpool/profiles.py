import sys

import requests
import uvicorn
from fastapi import FastAPI

app = FastAPI()


def fetch_profile():
    return requests.get(f"http://127.0.0.1:{sys.argv[2]}/profile", timeout=30).text


@app.get("/")
def show_profile():
    return fetch_profile()


uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="critical")
