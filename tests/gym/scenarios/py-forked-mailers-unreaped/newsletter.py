import os
import time


def send_mail(address):
    pid = os.fork()
    if pid == 0:
        time.sleep(0.01)
        os._exit(0)


n = 0
while True:
    n += 1
    send_mail(f"reader{n}@example.net")
    time.sleep(0.04)
