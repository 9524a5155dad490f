"""User profiles in a file; each change is safe on the disk before the answer."""

import dbm.dumb
import os


class Profiles:
    def __init__(self, path):
        self.db = dbm.dumb.open(path, "c")
        self.folder = os.open(os.path.dirname(path), os.O_RDONLY)
        self.journal = open(path + ".journal", "ab", buffering=0)

    def change(self, user, text):
        self.db[user] = text
        self.make_durable(f"{user}={text}\n".encode())

    def make_durable(self, line):
        self.journal.write(line)
        os.fdatasync(self.journal.fileno())
        os.fsync(self.folder)
