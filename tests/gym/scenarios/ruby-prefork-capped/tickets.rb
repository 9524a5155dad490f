require 'socket'
require 'digest'

server = TCPServer.new('127.0.0.1', ARGV[0].to_i)
server.listen(128)

def sign_ticket(text)
  3000.times { text = Digest::SHA256.hexdigest(text) }
  text
end

3.times do
  fork do
    loop do
      client = server.accept
      while (line = client.gets)
        next unless line == "\r\n"
        body = sign_ticket('seat 12')
        client.write "HTTP/1.1 200 OK\r\nContent-Length: #{body.size}\r\nConnection: close\r\n\r\n#{body}"
        break
      end
      client.close
    end
  end
end
Process.waitall
