import os
import subprocess
import sys
import threading
import time

folder = sys.argv[1]


def watch(number):
    reader, writer = os.pipe()
    worker = subprocess.Popen([sys.executable, "worker.py", str(writer)], pass_fds=[writer])
    os.close(writer)
    while os.read(reader, 1):
        pass
    worker.wait()


def run_jobs():
    while True:
        subprocess.run(["sh", "-c", f"ls /usr/bin | sort -r | head -50 > {folder}/list; wc -l < {folder}/list > {folder}/count"])
        time.sleep(1)


for number in range(3):
    threading.Thread(target=watch, args=(number,)).start()
run_jobs()
