import os

from celery import Celery

app = Celery("tasks", broker=f"redis://127.0.0.1:{os.environ['BROKER']}/0")
app.conf.broker_connection_retry_on_startup = True


@app.task
def add(a, b):
    return a + b
