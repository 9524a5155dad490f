def export_row(file, n)
  file.syswrite("#{n};")
end

file = File.open(ARGV[0], "w")
(0..).each do |n|
  export_row(file, n)
  file.truncate(0) if n % 1_000_000 == 0
end
