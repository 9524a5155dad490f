require 'json'
require 'socket'
TEXT = JSON.dump((0...40_000).map { |n| { 'id' => n, 'name' => "tariff #{n}", 'price' => n * 1.5 } })
server = TCPServer.new('127.0.0.1', ARGV[0].to_i)
loop do
  client = server.accept
  client.gets("\r\n\r\n")
  size = JSON.parse(TEXT).size.to_s
  client.write("HTTP/1.1 200 OK\r\nContent-Length: #{size.size}\r\nConnection: close\r\n\r\n#{size}")
  client.close
end
