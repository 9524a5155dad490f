const http = require("http");
const [mine, down] = process.argv.slice(2).map(Number);
const agent = new http.Agent({ keepAlive: true });

function ask(path) {
  return new Promise((resolve, reject) => {
    http
      .get({ host: "127.0.0.1", port: down, path, agent }, (answer) => {
        answer.resume();
        answer.on("end", resolve);
      })
      .on("error", reject);
  });
}

http
  .createServer(async (request, response) => {
    await Promise.all([ask("/user"), ask("/cart"), ask("/prices"), ask("/stock")]);
    response.end("ok");
  })
  .listen(mine, "127.0.0.1");
