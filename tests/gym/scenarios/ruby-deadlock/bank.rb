require "socket"
A, B = Mutex.new, Mutex.new

def transfer(first, second)
  first.synchronize { sleep 0.5; second.synchronize { } }
end

Thread.new { transfer(A, B) }
Thread.new { transfer(B, A) }
server = TCPServer.new("127.0.0.1", ARGV[0].to_i)
loop do
  Thread.new(server.accept) do |client|
    client.readpartial(2000)
    A.synchronize { client.write("HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok") }
    client.close
  end
end
