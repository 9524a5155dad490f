require 'socket'
server = TCPServer.new('127.0.0.1', ARGV[0].to_i)
jobs = Queue.new
4.times do
  Thread.new do
    loop do
      client = jobs.pop
      client.gets("\r\n\r\n")
      client.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
      client.close
    end
  end
end
Thread.new { loop { sleep 1; GC.stat } }
loop { jobs << server.accept }
