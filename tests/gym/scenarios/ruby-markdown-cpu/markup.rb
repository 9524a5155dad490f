# A subset of Markdown.
class Markup
  RULES = [
    [/\*\*([^*]+)\*\*/, '<b>\1</b>'],
    [/_([^_]+)_/, '<i>\1</i>'],
    [/\[([^\]]+)\]\(([^)]+)\)/, '<a href="\2">\1</a>']
  ].freeze

  def initialize(text)
    @text = text
  end

  def render
    @text.each_line.map { |line| inline(line) }.join
  end

  def inline(line)
    words = line.split(' ')
    words.each_index do |at|
      RULES.each { |pattern, with| words[at] = words[at].gsub(pattern, with) }
    end
    words.join(' ')
  end
end
