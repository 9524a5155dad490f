local ffi = require("ffi")
local bit = require("bit")
ffi.cdef [[
struct sockaddr_in { uint16_t family, port; uint32_t address; uint8_t zero[8]; };
int socket(int, int, int); int bind(int, const void *, uint32_t); int listen(int, int);
int accept(int, void *, void *); int connect(int, const void *, uint32_t);
long read(int, void *, size_t); long write(int, const void *, size_t); int close(int);
int setsockopt(int, int, int, const void *, uint32_t);
]]
local C = ffi.C
local buffer = ffi.new("char[4096]")

local function address(port)
  local at = ffi.new("struct sockaddr_in")
  at.family = 2
  at.port = bit.bor(bit.rshift(port, 8), bit.lshift(bit.band(port, 255), 8))
  at.address = 0x0100007f
  return at
end

local function fetch_stock(port)
  local fd = C.socket(2, 1, 0)
  local text = "GET /stock HTTP/1.1\r\nConnection: close\r\n\r\n"
  local size = 0
  if C.connect(fd, address(port), 16) == 0 then
    C.write(fd, text, #text)
    size = tonumber(C.read(fd, buffer, 4096))
  end
  C.close(fd)
  return size
end

local one = ffi.new("int[1]", 1)
local server = C.socket(2, 1, 0)
C.setsockopt(server, 1, 2, one, 4)
assert(C.bind(server, address(tonumber(arg[1])), 16) == 0 and C.listen(server, 64) == 0)
while true do
  local client = C.accept(server, nil, nil)
  if C.read(client, buffer, 4096) > 0 then
    local body = "stock " .. fetch_stock(tonumber(arg[2])) .. "\n"
    local text = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: " .. #body .. "\r\n\r\n" .. body
    C.write(client, text, #text)
  end
  C.close(client)
end
