# Calls itself in many ways, then says by which calls it came here, and waits for its input.
$warm = true
$main = Thread.current
$said = Mutex.new

def stay
  return 1 if $warm

  at = caller_locations(1).map { |one| [one.label, one.path, one.lineno] }
  $said.synchronize { $stdout.puts [Thread.current.name.to_s, at].inspect; $stdout.flush }
  Thread.current == $main ? $stdin.gets : sleep(1000)
  1
end

class Box
  include Comparable
  attr_reader :left
  def initialize(left, goes = false) = (@left = left; descend(left) if goes)
  def to_s = descend(@left).to_s
  def <=>(other) = descend(@left)
  def method_missing(name, *given) = name == :unknown ? descend(given[0]) : super
  def respond_to_missing?(*) = true
  def coerce(other) = [descend(@left), 1]
  def each
    yield descend(@left)
  end
  include Enumerable
  def [](at) = descend(at)
  def ==(other) = descend(@left) == 1
  def deconstruct = [descend(@left)]
  def to_proc = proc { |x| descend(x) }
  def self.make(left) = descend(left)
  define_method(:made) do |left|
    descend(left)
  end
  class_eval <<~RUBY, "made.rb", 40
    def evaluated(left)

      descend(left)
    end
  RUBY
end
class Inner < Box
  def made(left) = super
  def self.const_missing(name) = descend(@@left)
  def self.go(left)
    @@left = left
    self::Missing
  end
end
module Kernel
  def descend(left)
    return stay if left <= 0
    below = left - 1
    case left % 30
    when 0 then descend(below)
    when 1 then [3].each { |x| descend(below) }
    when 2 then [below].map { |x| descend(x) }.first
    when 3 then Box.make(below)
    when 4 then 1.times { descend(below) }
    when 5 then Box.new(below).to_s.to_i
    when 6 then "b".gsub(/b/) { descend(below).to_s }
    when 7 then Box.new(below).public_send(:made, below)
    when 8 then Box.new(below).unknown(below)
    when 9 then Box.new(below).map { |x| x }
    when 10 then Box.new(below, true)
    when 11 then Box.new(below).evaluated(below)
    when 12 then eval("\n\ndescend(below)")
    when 13 then begin; raise "x"; rescue; descend(below); end
    when 14 then begin; 1; ensure; descend(below); end
    when 15 then ->(x) { descend(x) }.call(below)
    when 16 then [[1, 2], [2, 1]].sort { |a, b| descend(below); 0 }
    when 17 then { 1 => 2 }.each_pair { |k, v| descend(below) }
    when 18 then Hash.new { |h, k| descend(below) }[below]
    when 19 then method(:descend).to_proc.call(below)
    when 20 then [below].each(&method(:descend))
    when 21 then Inner.new(below).made(below)
    when 22 then catch(:out) { descend(below) }
    when 23 then loop { break descend(below) }
    when 24 then Box.new(below).instance_eval { descend(below) }
    when 25 then "#{Box.new(below)}".size
    when 26
      x = 1 +
        [1, 2].inject do |a, b|
          descend(below)
        end.to_i
    when 27 then Inner.go(below)
    when 28 then [below].each_with_index.map { |a, b| descend(a) }
    else [below].each { |x| [x].each { |y| [y].each do |z| descend(z) end } }
    end
  end
end

turns, depth, threads = ARGV.map(&:to_i)
turns.times { |turn| descend(turn % 31) }
$warm = false
(1..threads.to_i).each { |at| Thread.new { Thread.current.name = "t#{at}"; descend(depth - at) } }
descend(depth)
