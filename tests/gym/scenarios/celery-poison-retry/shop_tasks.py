import os

from celery import Celery

from feed import parse_feed

app = Celery("shop", broker=f"redis://127.0.0.1:{os.environ['BROKER']}/0")
app.conf.broker_connection_retry_on_startup = True
app.conf.task_acks_late = True


@app.task(bind=True, max_retries=None)
def import_feed(self, text):
    try:
        return len(parse_feed(text))
    except ValueError as error:
        raise self.retry(exc=error, countdown=0)
