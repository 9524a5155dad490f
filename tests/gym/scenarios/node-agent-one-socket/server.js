const http = require("http");

const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });

http
  .createServer((request, response) => {
    http.get({ port: Number(process.argv[3]), host: "127.0.0.1", agent }, (answer) => {
      answer.resume();
      answer.on("end", () => response.end("ok"));
    });
  })
  .listen(Number(process.argv[2]), "127.0.0.1");
