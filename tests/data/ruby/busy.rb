# Works and waits for ever, in functions of which each has few callers.
module App
  class Work
    def spin(number)
      x = 0
      i = 0
      while i < number
        x = (x * 31 + i) % 1000003
        i += 1
      end
      x
    end

    def sorts
      values = (0...2000).map { |i| (i * 7919) % 2003 }
      values.sort { |a, b| a <=> b }[5]
    end

    def gen
      50.times { yield spin(2000) }
    end

    def outer
      gen { |value| value }
    end

    define_method(:made) do
      spin(20000)
    end
  end

  def self.texts
    300.times { "hello world".*(20).gsub(/[aeiou]/, "x").size }
  end

  def self.naps(left)
    if left > 0
      naps(left - 1)
      return
    end
    sleep(0.003)
  end

  def self.waits
    naps(2)
  end

  def self.run
    work = Work.new
    loop do
      work.spin(20000)
      work.sorts
      texts
      work.outer
      work.made
      waits
    end
  end
end
Thread.new { loop { App.waits } } if ARGV[0] == "threads"
puts "ready"
$stdout.flush
App.run
