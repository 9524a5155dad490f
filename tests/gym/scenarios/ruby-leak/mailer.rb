Process.setproctitle("mailer: queue default")
KEPT = []

def deliver(n)
  KEPT << "to=#{n};body=" + "x" * 20_000
end

(0..).each { |n| deliver(n); sleep 0.01 }
