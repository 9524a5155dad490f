import os

import requests
from celery import Celery

app = Celery("tasks", broker=f"redis://127.0.0.1:{os.environ['BROKER']}/0")
app.conf.broker_connection_retry_on_startup = True


def post_receipt(number):
    return requests.get(f"http://127.0.0.1:{os.environ['DOWN']}/receipt/{number}", timeout=20).text


@app.task
def send_receipt(number):
    return post_receipt(number)
