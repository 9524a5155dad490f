const net = require("net");
const http = require("http");
const [port, redis, topic] = process.argv.slice(2);
const recent = [];

function subscribeToPrices() {
  const socket = net.connect(Number(redis), "127.0.0.1", () => socket.write(`SUBSCRIBE ${topic}\r\n`));
  socket.on("data", (text) => {
    recent.push(text.length);
    if (recent.length > 100) recent.shift();
  });
}

subscribeToPrices();
http.createServer((request, response) => response.end(JSON.stringify(recent))).listen(port, "127.0.0.1");
