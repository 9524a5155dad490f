local function new_player(number)
  return { name = "player" .. number, points = (number * 7919) % 1009 }
end

local function place_of(player, players)
  local place = 1
  for _, other in pairs(players) do
    if tostring(other.points) > tostring(player.points) then
      place = place + 1
    end
  end
  return place
end

local function rank_all(players)
  local lines = {}
  for _, player in pairs(players) do
    lines[#lines + 1] = player.name .. ":" .. place_of(player, players)
  end
  return table.concat(lines, ",")
end

local players = {}
for number = 1, 700 do
  players[number] = new_player(number)
end
while true do
  local text = rank_all(players)
  assert(#text > 0)
end
