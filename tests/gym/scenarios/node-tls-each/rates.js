const http = require("http");
const https = require("https");
const fs = require("fs");
const [port, back, certificate] = process.argv.slice(2);
const ca = fs.readFileSync(certificate);

function fetchRate(done) {
  const options = { host: "localhost", family: 4, port: back, path: "/rate", ca, agent: false };
  https.get(options, (answer) => {
    let text = "";
    answer.on("data", (part) => (text += part));
    answer.on("end", () => done(JSON.parse(text)));
  }).on("error", (error) => done({ error: error.message }));
}

http.createServer((request, response) => {
  fetchRate((rate) => response.end(JSON.stringify(rate)));
}).listen(port, "127.0.0.1");
