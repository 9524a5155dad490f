require 'net/http'
require 'socket'

class Pool
  def initialize(size, port)
    @lock = Mutex.new
    @free = ConditionVariable.new
    @idle = Array.new(size) { Net::HTTP.start('127.0.0.1', port) }
  end

  def with_connection
    connection = @lock.synchronize do
      @free.wait(@lock) while @idle.empty?
      @idle.pop
    end
    yield connection
  ensure
    @lock.synchronize do
      @idle.push(connection)
      @free.signal
    end
  end
end

POOL = Pool.new(2, ARGV[1].to_i)

def rate_of(_pair)
  POOL.with_connection { |connection| connection.get('/').body }
end

server = TCPServer.new('127.0.0.1', ARGV[0].to_i)
loop do
  Thread.new(server.accept) do |client|
    while client.gets
      nil while (line = client.gets) && line != "\r\n"
      text = rate_of('eur')
      client.write("HTTP/1.1 200 OK\r\nContent-Length: #{text.size}\r\n\r\n#{text}")
    end
  rescue StandardError
    client.close
  end
end
