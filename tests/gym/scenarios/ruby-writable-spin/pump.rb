require "socket"
LEFT, RIGHT = UNIXSocket.pair

def pump_once
  IO.select([LEFT], [LEFT], nil, 1.0)
end

loop { pump_once }
