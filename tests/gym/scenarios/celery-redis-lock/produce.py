import time

from tasks import book

number = 0
while True:
    number += 1
    book.delay(number)
    time.sleep(0.1)
