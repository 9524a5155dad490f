import os
import smtplib

from flask import Flask

app = Flask(__name__)


def send_receipt(address):
    with smtplib.SMTP("127.0.0.1", int(os.environ["MAIL"]), timeout=20) as mail:
        mail.sendmail("shop@example.test", [address], "Subject: receipt\r\n\r\nThank you.\r\n")


@app.route("/")
def index():
    send_receipt("somebody@example.test")
    return "sent"
