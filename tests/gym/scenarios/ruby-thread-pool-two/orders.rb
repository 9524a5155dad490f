require 'socket'
require 'net/http'

JOBS = Queue.new

def check_stock(number)
  Net::HTTP.get(URI("http://127.0.0.1:#{ARGV[1]}/stock/#{number}"))
end

def answer(client)
  nil while (line = client.gets) && line != "\r\n"
  text = check_stock(7)
  client.write("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: #{text.size}\r\n\r\n#{text}")
ensure
  client.close
end

2.times { Thread.new { loop { answer(JOBS.pop) rescue nil } } }
server = TCPServer.new('127.0.0.1', ARGV[0].to_i)
loop { JOBS << server.accept }
