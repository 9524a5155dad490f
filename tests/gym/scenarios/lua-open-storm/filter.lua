local function read_level(path)
  local file = io.open(path)
  local line = file:read("*l")
  file:close()
  return tonumber(line:match("%d+"))
end

local total = 0
while true do
  total = total + read_level(arg[1])
end
