const dgram = require("dgram");
const http = require("http");
const [mine, statsd] = process.argv.slice(2).map(Number);
const socket = dgram.createSocket("udp4");
socket.connect(statsd, "127.0.0.1", () => {
  function countBids(request) {
    for (let bid = 0; bid < 400; bid++) socket.send(`bids.${bid % 7}:${request}|c`);
  }
  http
    .createServer((request, response) => {
      countBids(1);
      response.end("ok");
    })
    .listen(mine, "127.0.0.1");
});
