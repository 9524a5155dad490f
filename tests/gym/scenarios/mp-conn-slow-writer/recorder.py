import multiprocessing
import time


def write_tape(inbox):
    while True:
        frame = inbox.recv_bytes()
        time.sleep(0.2)
        assert frame


class Recorder:
    def __init__(self):
        inbox, self.outbox = multiprocessing.Pipe(duplex=False)
        self.writer = multiprocessing.Process(target=write_tape, args=(inbox,), daemon=True)
        self.writer.start()

    def push_frame(self, frame):
        self.outbox.send_bytes(frame)


recorder = Recorder()
while True:
    recorder.push_frame(bytes(180_000))
    time.sleep(0.01)
