import os

import urllib3

pool = urllib3.HTTPConnectionPool("127.0.0.1", int(os.environ["TAX"]), maxsize=2, block=True)


class TaxClient:
    def rate(self, country):
        answer = pool.request("GET", f"/rate/{country}")
        return float(answer.data)


client = TaxClient()
