require 'webrick'
require 'digest'

# A ticket is signed many times, as the rules of the railways want it.
class Ticket
  def initialize(number)
    @number = number
  end

  def sign
    (1..1500).inject(@number.to_s) { |text, round| Digest::SHA256.hexdigest("#{round}#{text}") }
  end
end

server = WEBrick::HTTPServer.new(Port: ARGV[0].to_i, BindAddress: '127.0.0.1', AccessLog: [], Logger: WEBrick::Log.new(File::NULL))
server.mount_proc('/ticket') { |request, response| response.body = Ticket.new(request.path[/\d+/].to_i).sign }
trap('TERM') { server.shutdown }
server.start
