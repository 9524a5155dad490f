import time

import numpy as np


class MotionDetector:
    def __init__(self):
        self.history = []

    def compare_frames(self, frame):
        self.history.append(frame.astype(np.float32))
        if len(self.history) < 2:
            return 0.0
        return float(np.abs(self.history[-1] - self.history[-2]).mean())


detector = MotionDetector()
rng = np.random.default_rng(1)
frame = rng.integers(0, 255, (240, 320), dtype=np.uint8)
while True:
    frame = np.roll(frame, 1)
    detector.compare_frames(frame)
    time.sleep(0.05)
