KEPT = Array.new(900_000) { |number| "row #{number}" }

def report
  200_000.times.map { |number| [number, number.to_s] }.size
end

loop { report; GC.start; sleep 0.01 }
