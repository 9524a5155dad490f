import threading
import urllib.request

from django.conf import settings
from django.core.cache import cache

lock = threading.RLock()


class Timetable:
    def __init__(self, station):
        self.station = station

    def download(self):
        with urllib.request.urlopen(settings.TIMETABLE_URL, timeout=10) as answer:
            return answer.read().decode()

    def departures(self):
        key = f"departures:{self.station}"
        with lock:  # so that nobody downloads it twice
            text = cache.get(key)
            if text is None:
                text = self.download()
                cache.set(key, text, 2)
        return text
