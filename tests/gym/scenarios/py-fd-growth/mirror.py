import resource
import time

resource.setrlimit(resource.RLIMIT_NOFILE, (20000, 20000))
kept = []


def open_part() -> None:
    kept.append(open("/etc/hosts"))


while True:
    open_part()
    time.sleep(0.01)
