import os

DEBUG = False
SECRET_KEY = "gym"
ALLOWED_HOSTS = ["*"]
ROOT_URLCONF = "urls"
INSTALLED_APPS = []
CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache", "OPTIONS": {"MAX_ENTRIES": 50}}}
TIMETABLE_URL = f"http://127.0.0.1:{os.environ['RAIL']}/"
