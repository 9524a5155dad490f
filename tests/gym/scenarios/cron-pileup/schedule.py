import subprocess
import sys
import time

jobs = []
while True:
    jobs = [job for job in jobs if job.poll() is None]
    if len(jobs) < 40:
        jobs.append(subprocess.Popen(["sh", "nightly.sh", sys.argv[1]]))
    time.sleep(0.4)
