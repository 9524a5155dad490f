import os
import time

import redis
from celery import Celery

app = Celery("tasks", broker=f"redis://127.0.0.1:{os.environ['BROKER']}/0")
app.conf.broker_connection_retry_on_startup = True


def save_state(number):
    while True:
        try:
            return redis.Redis(port=int(os.environ["CACHE"])).set(f"state:{number}", "done")
        except redis.ConnectionError:
            time.sleep(0.02)


@app.task
def index_page(number):
    save_state(number)
