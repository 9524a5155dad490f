require 'socket'

LOCK = Mutex.new
PRINTER = File.open(ARGV[1], 'w')
PRINTER.sync = true

def print_report(number)
  LOCK.synchronize { PRINTER.write("report #{number} " * 400) }
end

server = TCPServer.new('127.0.0.1', ARGV[0].to_i)
loop do
  Thread.new(server.accept) do |client|
    while client.gets
      nil while (line = client.gets) && line != "\r\n"
      print_report(7)
      client.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    end
  rescue StandardError
    client.close
  end
end
