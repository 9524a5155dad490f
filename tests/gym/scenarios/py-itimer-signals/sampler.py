import signal
import time

ticks = 0


def on_tick(number, frame):
    global ticks
    ticks += 1


signal.signal(signal.SIGALRM, on_tick)
signal.setitimer(signal.ITIMER_REAL, 0.0002, 0.0002)
while True:
    time.sleep(1)
