"""A preview server's reloader: has any page changed?"""

import os
import sys
import time


def find_changed(root, known):
    changed = 0
    for folder, _, names in os.walk(root):
        for name in names:
            path = os.path.join(folder, name)
            at = os.stat(path).st_mtime_ns
            changed += known.get(path) != at
            known[path] = at
    return changed


known = {}
while True:
    find_changed(sys.argv[1], known)
    time.sleep(0.1)
