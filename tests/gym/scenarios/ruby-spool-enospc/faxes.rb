class FaxSpool
  def initialize(folder)
    @folder = folder
    @number = 0
  end

  def store_fax(pages)
    @number += 1
    File.open("#{@folder}/fax-#{@number}", 'w') { |file| file.write(pages) }
  rescue Errno::ENOSPC
    sleep 0.002
    retry if @number % 50 != 0
  end
end

spool = FaxSpool.new(ARGV[0])
loop { spool.store_fax('p' * 20_000) }
