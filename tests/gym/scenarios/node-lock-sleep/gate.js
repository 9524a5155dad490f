const http = require("http");
let chain = Promise.resolve();
const pause = (ms) => new Promise((done) => setTimeout(done, ms));
http.createServer((request, response) => {
  chain = chain.then(() => pause(60)).then(() => response.end("ok"));
}).listen(Number(process.argv[2]), "127.0.0.1");
