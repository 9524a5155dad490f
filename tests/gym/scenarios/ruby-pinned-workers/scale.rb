require "socket"

def scale_picture
  (1..300_000).sum { |n| n * n % 7 }
end

server = TCPServer.new("127.0.0.1", ARGV[0].to_i)
3.times do
  fork do
    loop do
      client = server.accept
      while (line = client.gets) && line != "\r\n"
      end
      scale_picture
      client.write("HTTP/1.0 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
      client.close
    end
  end
end
Process.waitall
