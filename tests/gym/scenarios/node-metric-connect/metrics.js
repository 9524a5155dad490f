const net = require("net");

function sendMetric(port, line) {
  return new Promise((done) => {
    const socket = net.connect(port, "127.0.0.1", () => socket.end(`${line}\n`));
    socket.on("close", done).on("error", done).resume();
  });
}

module.exports = { sendMetric };
