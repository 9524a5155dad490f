import logging
import time

from flask import Flask

app = Flask(__name__)
log = logging.getLogger("desk")


class SlowAudit(logging.Handler):
    def emit(self, record):
        time.sleep(0.04)


log.addHandler(SlowAudit())
log.setLevel(logging.INFO)


@app.route("/ticket")
def open_ticket():
    log.info("a ticket")
    return "ok"
