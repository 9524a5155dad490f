import sys
import time

import redis

db = redis.Redis(port=int(sys.argv[1]))
script = """
local best = 0
for i = 1, 4000000 do
  local score = (i * 7919) % 10007
  if score > best then best = score end
end
return best
"""
while True:
    print(db.eval(script, 0))
    time.sleep(0.3)
