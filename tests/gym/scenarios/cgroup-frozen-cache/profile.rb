require "socket"

def load_profile(back, name)
  cache = TCPSocket.new("127.0.0.1", back)
  cache.write("GET #{name}\r\n")
  cache.gets
ensure
  cache&.close
end

def answer(client, back)
  client.gets
  nil while (line = client.gets) && line != "\r\n"
  body = load_profile(back, "ann").inspect
  client.write("HTTP/1.0 200 OK\r\nContent-Length: #{body.size}\r\n\r\n#{body}")
ensure
  client.close
end

server = TCPServer.new("127.0.0.1", Integer(ARGV[0]))
loop { Thread.new(server.accept) { |client| answer(client, Integer(ARGV[1])) } }
