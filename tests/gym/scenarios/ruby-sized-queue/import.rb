ROWS = SizedQueue.new(4)

def store_row(row)
  sleep 0.03
end

def push_row(row)
  ROWS.push(row)
end

Array.new(5) { |n| Thread.new { loop { push_row("row #{n}") } } }
loop { store_row(ROWS.pop) }
