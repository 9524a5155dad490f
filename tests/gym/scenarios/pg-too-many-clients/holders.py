import sys
import time
from pathlib import Path

import psycopg2

kept = [
    psycopg2.connect(host=sys.argv[2], port=sys.argv[1], user="app", dbname="shop")
    for _ in range(10)
]
Path(sys.argv[3]).touch()
time.sleep(600)
