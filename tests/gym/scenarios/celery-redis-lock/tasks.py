import os
import time

import redis
from celery import Celery

URL = f"redis://127.0.0.1:{os.environ['BROKER']}/0"
app = Celery("tasks", broker=URL)
app.conf.broker_connection_retry_on_startup = True
store = redis.Redis.from_url(URL)


def rebuild_totals(account):
    time.sleep(0.25)


def update_account(account):
    with store.lock("accounts", timeout=20):
        rebuild_totals(account)


@app.task
def book(account):
    update_account(account)
