import subprocess
import time

kept = []


def start_worker():
    try:
        kept.append(subprocess.Popen(["sleep", "600"]))
    except OSError:
        time.sleep(0.05)


while True:
    start_worker()
