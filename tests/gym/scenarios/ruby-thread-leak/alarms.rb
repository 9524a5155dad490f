def watch_alarm(queue)
  Thread.new { queue.pop }
end

kept = []
loop do
  queue = Queue.new
  kept << queue
  watch_alarm(queue)
  sleep 0.04
end
