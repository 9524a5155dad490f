local ffi = require("ffi")
local bit = require("bit")
ffi.cdef [[
struct sockaddr_in { uint16_t family, port; uint32_t address; uint8_t zero[8]; };
struct pollfd { int fd; short events, revents; };
int socket(int, int, int); int bind(int, const void *, uint32_t); int listen(int, int);
int poll(struct pollfd *, unsigned long, int); int accept(int, void *, void *); int close(int);
]]
local C = ffi.C
local server = C.socket(2, 1, 0)
local port = tonumber(arg[1])
local at = ffi.new("struct sockaddr_in", { 2, bit.bor(bit.rshift(port, 8), bit.lshift(bit.band(port, 255), 8)), 0x0100007f })
assert(C.bind(server, at, 16) == 0 and C.listen(server, 64) == 0)
local waiting = ffi.new("struct pollfd[1]")
waiting[0].fd = server
waiting[0].events = 1

local function next_client(timeout)
  if C.poll(waiting, 1, timeout) > 0 then
    return C.accept(server, nil, nil)
  end
end

while true do
  local client = next_client(0)
  if client then
    C.close(client)
  end
end
