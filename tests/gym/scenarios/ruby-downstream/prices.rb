require "socket"

def fetch_price(socket)
  socket.puts "price"
  socket.gets
end

workers = Array.new(3) do
  Thread.new do
    socket = TCPSocket.new("127.0.0.1", ARGV[0].to_i)
    loop { fetch_price(socket) }
  end
end
workers.each(&:join)
