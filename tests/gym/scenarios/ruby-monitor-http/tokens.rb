require 'monitor'
require 'net/http'
require 'socket'

class Tokens
  include MonitorMixin

  def refresh_token
    Net::HTTP.get('127.0.0.1', '/', ARGV[1].to_i)
  end

  def token_for(user)
    synchronize { refresh_token }
  end
end

tokens = Tokens.new
server = TCPServer.new('127.0.0.1', ARGV[0].to_i)
loop do
  Thread.new(server.accept) do |client|
    while client.gets
      nil while (line = client.gets) && line != "\r\n"
      text = tokens.token_for('anna')
      client.write("HTTP/1.1 200 OK\r\nContent-Length: #{text.size}\r\n\r\n#{text}")
    end
  rescue StandardError
    client.close
  end
end
