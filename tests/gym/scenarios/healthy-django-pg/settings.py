import os

DEBUG = False
SECRET_KEY = "gym"
ALLOWED_HOSTS = ["*"]
ROOT_URLCONF = "urls"
INSTALLED_APPS = []
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "HOST": "127.0.0.1",
        "PORT": os.environ["DB"],
        "USER": "postgres",
        "NAME": "shop",
        "CONN_MAX_AGE": 600,
    }
}
