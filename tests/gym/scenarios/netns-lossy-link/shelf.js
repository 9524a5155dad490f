const http = require("http");
const [port, host, down] = process.argv.slice(2);
const agent = new http.Agent({ keepAlive: true, maxSockets: 8 });

function fetchStock(done) {
  http.get({ host, port: down, path: "/stock", agent }, (answer) => {
    let text = "";
    answer.on("data", (part) => (text += part));
    answer.on("end", () => done(text));
  }).on("error", (error) => done(error.message));
}

http.createServer((request, response) => {
  fetchStock((text) => response.end(text));
}).listen(port, "127.0.0.1");
