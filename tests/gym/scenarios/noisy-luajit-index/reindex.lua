local function rank_words(n)
  local words = {}
  for i = 1, n do words[i] = tostring((i * 7919) % 100003) end
  table.sort(words)
  return #words
end
while true do rank_words(50000) end
