require 'socket'

# The few commands of Redis that the board needs.
class RedisLink
  def initialize(port)
    @socket = TCPSocket.new('127.0.0.1', port)
  end

  def call(*words)
    @socket.write("*#{words.size}\r\n" + words.map { |w| "$#{w.to_s.bytesize}\r\n#{w}\r\n" }.join)
    reply
  end

  def reply
    line = @socket.gets
    case line[0]
    when '$' then line[1..].to_i.negative? ? nil : @socket.read(line[1..].to_i + 2)[0..-3]
    when '*' then Array.new(line[1..].to_i) { reply }
    else line[1..].chomp
    end
  end
end
