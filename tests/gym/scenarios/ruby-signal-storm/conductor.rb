# Tells each player that there is work, by a signal.
class Conductor
  def initialize(count)
    @players = Array.new(count) { |number| fork { Player.new(number).run } }
  end

  def run
    loop do
      @players.each { |pid| beat(pid) }
      sleep 0.0005
    end
  end

  def beat(pid)
    Process.kill(:USR1, pid)
  end
end

class Player
  def initialize(number)
    @number = number
    @beats = 0
  end

  def run
    trap('TERM') { exit }
    trap('USR1') { @beats += 1 }
    loop { sleep 0.2 }
  end
end

Conductor.new(2).run
