const net = require("net");

const server = net.createServer((socket) => socket.resume());

function checkPeer() {
  const socket = net.connect(7070, "127.0.0.1", () => socket.end());
  socket.on("error", () => {});
}

server.listen(7070, "127.0.0.1", () => setInterval(checkPeer, 10));
