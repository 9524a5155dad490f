"""Jobs inside of the web worker, as a cron of its own would be one thing more to run."""

import threading
import time


class Scheduler(threading.Thread):
    def __init__(self):
        super().__init__(name="scheduler", daemon=True)
        self.jobs = []

    def every(self, seconds, job):
        self.jobs.append([0.0, seconds, job])

    def run(self):
        while True:
            now = time.monotonic()
            for entry in self.jobs:
                if entry[0] <= now:
                    entry[0] = now + entry[1]
                    entry[2]()
            time.sleep(0.01)
