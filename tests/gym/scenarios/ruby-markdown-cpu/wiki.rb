require 'webrick'
require_relative 'markup'

PAGE = Array.new(900) { |n| "line #{n} with **bold#{n}** and _italic_ and [link](http://x/#{n}) of it\n" }.join

class WikiPage < WEBrick::HTTPServlet::AbstractServlet
  def do_GET(_request, response)
    response['Content-Type'] = 'text/html'
    response.body = Markup.new(PAGE).render
  end
end

server = WEBrick::HTTPServer.new(Port: ARGV[0].to_i, BindAddress: '127.0.0.1', AccessLog: [], Logger: WEBrick::Log.new(File::NULL))
server.mount('/page', WikiPage)
trap('TERM') { server.shutdown }
server.start
