require 'net/http'
require 'socket'

class CarrierPool
  def initialize(size, port)
    @free = Queue.new
    size.times { @free << Net::HTTP.start('127.0.0.1', port) }
  end

  def with
    connection = @free.pop
    yield connection
  ensure
    @free << connection
  end
end

POOL = CarrierPool.new(2, ARGV[1].to_i)

def quote_shipping
  POOL.with { |http| http.get('/quote').body }
end

server = TCPServer.new('127.0.0.1', ARGV[0].to_i)
loop do
  Thread.new(server.accept) do |client|
    while (line = client.gets)
      nil while (line = client.gets) && line != "\r\n"
      body = quote_shipping
      client.write("HTTP/1.1 200 OK\r\nContent-Length: #{body.size}\r\n\r\n#{body}")
    end
  rescue StandardError
    client.close
  end
end
