import fcntl
import os
import time

from celery import Celery

app = Celery("feeds", broker=f"redis://127.0.0.1:{os.environ['BROKER']}/0")
app.conf.broker_connection_retry_on_startup = True


def write_feed(number):
    time.sleep(0.3)


@app.task
def refresh_feed(number):
    with open(os.environ["LOCK"], "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        write_feed(number)
