require "socket"

def price(cache, number)
  cache.write("*2\r\n$3\r\nGET\r\n$6\r\np%05d\r\n" % number)
  cache.readpartial(4096)
end

def serve(client)
  cache = TCPSocket.new("127.0.0.1", ARGV[1].to_i)
  while client.readpartial(4096)
    200.times { |number| price(cache, number) }
    client.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
  end
rescue EOFError, Errno::ECONNRESET
  client.close
end

server = TCPServer.new("127.0.0.1", ARGV[0].to_i)
loop { Thread.new(server.accept) { |client| serve(client) } }
