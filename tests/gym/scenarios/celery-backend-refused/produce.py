import time

from tasks import index_page

number = 0
while True:
    number += 1
    index_page.delay(number)
    time.sleep(0.5)
