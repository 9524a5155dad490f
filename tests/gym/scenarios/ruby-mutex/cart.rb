LOCK = Mutex.new

def add_item
  LOCK.synchronize { sleep 0.01 }
end

Array.new(6) { Thread.new { loop { add_item } } }.each(&:join)
