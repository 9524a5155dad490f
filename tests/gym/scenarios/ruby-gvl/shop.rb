require "socket"

def build_report
  (1..2_000_000).sum { |n| (n * 7919) % 1013 }
end

Thread.new { loop { build_report } }
server = TCPServer.new("127.0.0.1", ARGV[0].to_i)
loop do
  Thread.new(server.accept) do |client|
    client.readpartial(2000)
    client.write("HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok")
    client.close
  end
end
