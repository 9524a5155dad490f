require 'socket'

class TemplateFinder
  def initialize(root)
    @paths = (1..60).map { |n| "#{root}/themes/v#{n}" }
    @suffixes = %w[de.html.erb de.erb html.erb erb haml slim]
  end

  def find_template(name)
    @paths.each do |folder|
      @suffixes.each do |suffix|
        file = "#{folder}/#{name}.#{suffix}"
        return file if File.exist?(file)
      end
    end
    nil
  end
end

finder = TemplateFinder.new(ARGV[1])
server = TCPServer.new('127.0.0.1', ARGV[0].to_i)
server.listen(64)
loop do
  Thread.new(server.accept) do |client|
    while (line = client.gets)
      next unless line == "\r\n"
      %w[header menu list footer].each { |part| finder.find_template(part) }
      client.write "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
    end
    client.close
  end
end
