import subprocess
import sys
import time


class Program:
    def __init__(self, *argv):
        self.argv = argv
        self.restart()

    def restart(self):
        self.process = subprocess.Popen(self.argv, stderr=subprocess.DEVNULL)

    def check(self):
        if self.process.poll() is not None:
            self.restart()


programs = [Program("sleep", "1000"), Program(sys.executable, "-S", "mailer.py"), Program("sleep", "2000")]
while True:
    for program in programs:
        program.check()
    time.sleep(0.005)
