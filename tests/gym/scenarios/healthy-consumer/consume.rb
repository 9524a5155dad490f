require "socket"

def take_job(sock)
  sock.write("*3\r\n$5\r\nBRPOP\r\n$4\r\njobs\r\n$1\r\n2\r\n")
  sock.readpartial(4096)
end

sock = TCPSocket.new("127.0.0.1", ARGV[0].to_i)
loop { take_job(sock) }
