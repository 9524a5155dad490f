require 'socket'

def name_guest(client)
  Socket.getnameinfo(client.remote_address.to_sockaddr)[0]
end

server = TCPServer.new('127.0.0.1', ARGV[0].to_i)
loop do
  Thread.new(server.accept) do |client|
    while client.gets
      nil while (line = client.gets) && line != "\r\n"
      name_guest(client)
      client.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    end
  rescue StandardError
    client.close
  end
end
