require_relative 'redis_link'

# Keeps who has been online last, newest first.
class Board
  def initialize(port)
    @redis = RedisLink.new(port)
  end

  def touch(user)
    @redis.call('LREM', 'board', 0, user)
    @redis.call('LPUSH', 'board', user)
  end

  def newest
    @redis.call('LRANGE', 'board', 0, 9)
  end
end

port = ARGV[0].to_i
threads = Array.new(3) do |number|
  Thread.new do
    board = Board.new(port)
    loop do
      board.touch("user#{rand(100_000)}")
      board.newest
      sleep 0.002 * number
    end
  end
end
threads.each(&:join)
