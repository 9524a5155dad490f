def append_line(file, text)
  file.write(text)
  file.fsync
end

File.open(ARGV[0], "a") do |file|
  loop { append_line(file, "entry " * 20 + "\n") }
end
