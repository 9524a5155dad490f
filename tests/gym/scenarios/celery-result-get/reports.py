import os
import time

from celery import Celery
from celery.result import allow_join_result

url = f"redis://127.0.0.1:{os.environ['BROKER']}"
app = Celery("reports", broker=f"{url}/0", backend=f"{url}/1")
app.conf.broker_connection_retry_on_startup = True
app.conf.worker_prefetch_multiplier = 1


@app.task
def count_page(number):
    time.sleep(0.05)
    return number * 7


@app.task
def make_report(number):
    with allow_join_result():
        return count_page.delay(number).get(timeout=30)
