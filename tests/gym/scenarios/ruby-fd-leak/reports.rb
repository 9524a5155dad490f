require 'webrick'

# The head of each report is shown in the list.
class Reports
  def initialize(folder)
    @folder = folder
    @heads = {}
  end

  def head(name)
    file = File.open(File.join(@folder, name))
    @heads[file.object_id] = file
    file.gets
  end

  def list
    Dir.children(@folder).first(2).map { |name| head(name) }
  end
end

reports = Reports.new(ARGV[1])
server = WEBrick::HTTPServer.new(Port: ARGV[0].to_i, BindAddress: '127.0.0.1', AccessLog: [], Logger: WEBrick::Log.new(File::NULL))
server.mount_proc('/') { |_request, response| response.body = reports.list.join }
trap('TERM') { server.shutdown }
server.start
