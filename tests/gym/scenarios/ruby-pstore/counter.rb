require "pstore"

store = PStore.new(ARGV[0])

def count_visit(store, page)
  store.transaction do
    visits = store[:visits] ||= {}
    visits[page] = (visits[page] || 0) + 1
    sleep 0.03
  end
end

number = 0
loop do
  number += 1
  count_visit(store, "page#{number % 50}")
  sleep 0.02
end
