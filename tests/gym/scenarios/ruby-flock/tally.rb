def add_total(path)
  File.open(path, "a") do |file|
    file.flock(File::LOCK_EX)
    sleep 0.03
    file.write("1\n")
  end
end

5.times do |n|
  fork do
    Process.setproctitle("tally: worker #{n}")
    loop { add_total(ARGV[0]) }
  end
end
Process.setproctitle("tally: master")
Process.waitall
