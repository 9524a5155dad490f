require 'socket'

CACHE = ARGV[1]
File.binwrite(CACHE, Marshal.dump((0...60_000).to_h { |n| ["pair-#{n}", {bid: n * 1.01, ask: n * 1.02, name: "rate #{n}"}] }))

def load_rates
  Marshal.load(File.binread(CACHE))
end

def quote(pair)
  load_rates[pair][:bid]
end

server = TCPServer.new('127.0.0.1', ARGV[0].to_i)
loop do
  Thread.new(server.accept) do |client|
    while client.gets
      nil while (line = client.gets) && line != "\r\n"
      text = quote('pair-77').to_s
      client.write("HTTP/1.1 200 OK\r\nContent-Length: #{text.size}\r\n\r\n#{text}")
    end
  rescue StandardError
    client.close
  end
end
