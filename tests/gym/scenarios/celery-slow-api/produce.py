import time

from tasks import send_receipt

number = 0
while True:
    number += 1
    send_receipt.delay(number)
    time.sleep(0.2)
