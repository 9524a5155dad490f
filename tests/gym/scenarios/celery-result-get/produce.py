import time

from reports import make_report

number = 0
while True:
    number += 1
    make_report.delay(number)
    time.sleep(0.25)
