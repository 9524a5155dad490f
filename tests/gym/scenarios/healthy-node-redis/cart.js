const net = require("net");

class Redis {
  constructor(port) {
    this.waiting = [];
    this.rest = "";
    this.socket = net.connect(port, "127.0.0.1").setNoDelay(true);
    this.socket.on("data", (data) => this.take(data.toString()));
  }

  take(text) {
    const lines = (this.rest + text).split("\r\n");
    this.rest = lines.pop();
    for (const line of lines) if (!line.startsWith("$")) this.waiting.shift()(line.replace(/^[:+]/, ""));
  }

  ask(line) {
    return new Promise((done) => {
      this.waiting.push(done);
      this.socket.write(`${line}\r\n`);
    });
  }
}

module.exports = { Redis };
