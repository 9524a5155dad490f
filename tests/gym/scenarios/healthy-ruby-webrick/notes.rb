require 'webrick'
require 'json'

# Notes in memory, saved every few seconds.
class Notes
  def initialize(path)
    @path = path
    @notes = Array.new(300) { |n| { id: n, text: "note #{n}" } }
    @lock = Mutex.new
  end

  def find(number)
    @lock.synchronize { @notes[number % @notes.size] }
  end

  def save
    text = @lock.synchronize { JSON.generate(@notes) }
    File.write(@path, text)
  end
end

notes = Notes.new(ARGV[1])
Thread.new { loop { sleep 3; notes.save } }
server = WEBrick::HTTPServer.new(Port: ARGV[0].to_i, BindAddress: '127.0.0.1', AccessLog: [], Logger: WEBrick::Log.new(File::NULL))
server.mount_proc('/note') { |request, response| response.body = JSON.generate(notes.find(request.path[/\d+/].to_i)) }
trap('TERM') { server.shutdown }
server.start
