import time

from tasks import scan_page, send_mail

number = 0
while True:
    number += 1
    scan_page.apply_async((number,), queue="scan")
    send_mail.apply_async((number,), queue="mail")
    time.sleep(0.08)
