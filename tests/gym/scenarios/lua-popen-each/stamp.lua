local function stamp()
  local pipe = io.popen("date +%T")
  local text = pipe:read("*l")
  pipe:close()
  return text
end

local out = io.open(arg[1], "w")
local number = 0
while true do
  number = number + 1
  out:write(stamp(), " line ", number, "\n")
end
