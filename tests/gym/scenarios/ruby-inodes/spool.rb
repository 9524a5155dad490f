def spool(folder, number)
  File.write("#{folder}/spool-#{number}", "x")
rescue Errno::ENOSPC
  sleep 0.05
end

number = 0
loop { spool(ARGV[0], number); number += 1 }
