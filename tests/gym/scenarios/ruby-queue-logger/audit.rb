require 'socket'

AUDIT = Queue.new
Thread.new do
  log = File.open(ARGV[1], 'a')
  loop do
    line, reply = AUDIT.pop
    log.write(line)
    log.fdatasync
    reply << true
  end
end

def record(text)
  reply = Queue.new
  AUDIT << [text, reply]
  reply.pop
end

server = TCPServer.new('127.0.0.1', ARGV[0].to_i)
loop do
  Thread.new(server.accept) do |client|
    while (first = client.gets)
      nil while (line = client.gets) && line != "\r\n"
      record("#{Time.now.to_f} #{first}" * 20)
      client.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    end
  rescue StandardError
    client.close
  end
end
