require "socket"

def render_feed
  (1..9000).map { |n| "<item>#{n}</item>" }.join
end

server = TCPServer.new("127.0.0.1", ARGV[0].to_i)
loop do
  Thread.new(server.accept) do |client|
    while (line = client.gets)
      next unless line == "\r\n"
      body = render_feed
      client.write("HTTP/1.1 200 OK\r\nContent-Length: #{body.bytesize}\r\n\r\n#{body}")
    end
  end
end
