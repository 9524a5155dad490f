import os

from celery import Celery

app = Celery("tasks", broker=f"redis://127.0.0.1:{os.environ['BROKER']}/0")
app.conf.broker_connection_retry_on_startup = True
seen = []


def remember_scan(number):
    seen.append([f"word {number} {n}" for n in range(3000)])


@app.task
def scan_page(number):
    remember_scan(number)


@app.task
def send_mail(number):
    return number
