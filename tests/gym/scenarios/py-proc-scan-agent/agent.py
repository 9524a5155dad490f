import os


def read_process(pid):
    total = 0
    try:
        for line in open(f"/proc/{pid}/smaps"):
            if line.startswith("Pss:"):
                total += int(line.split()[1])
        total += len(os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        pass
    return total


def watch_processes():
    while True:
        for pid in os.listdir("/proc"):
            if pid.isdigit():
                read_process(pid)


watch_processes()
