require 'digest'
require 'socket'

JOBS = Queue.new
DONE = Hash.new(0)
LOCK = Mutex.new

def run_job(number)
  sum = Digest::SHA256.hexdigest("job #{number}" * 50)
  LOCK.synchronize { DONE[sum[0]] += 1 }
end

4.times { Thread.new { loop { run_job(JOBS.pop) } } }
Thread.new { loop { sleep 5; LOCK.synchronize { DONE.clear } } }

server = TCPServer.new('127.0.0.1', ARGV[0].to_i)
number = 0
loop do
  Thread.new(server.accept) do |client|
    while client.gets
      nil while (line = client.gets) && line != "\r\n"
      JOBS << (number += 1)
      client.write("HTTP/1.1 202 OK\r\nContent-Length: 2\r\n\r\nok")
    end
  rescue StandardError
    client.close
  end
end
