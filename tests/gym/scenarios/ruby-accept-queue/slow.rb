require "socket"

def answer(client)
  client.readpartial(4000)
  sleep 0.2
  client.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
  client.close
end

server = TCPServer.new("127.0.0.1", ARGV[0].to_i)
loop do
  begin
    answer(server.accept)
  rescue EOFError, Errno::EPIPE, Errno::ECONNRESET
  end
end
