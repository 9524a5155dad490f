import time

from feeds import refresh_feed

number = 0
while True:
    number += 1
    refresh_feed.delay(number)
    time.sleep(0.15)
