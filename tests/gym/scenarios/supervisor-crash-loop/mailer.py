import os

SERVER = os.environ["SMTP_SERVER"]
print(SERVER)
