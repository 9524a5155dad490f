folder = ARGV[0]
def next_letter(folder)
  Dir.children(folder).map { |name| [File.mtime(File.join(folder, name)), name] }.min
end
loop { next_letter(folder); sleep 0.01 }
