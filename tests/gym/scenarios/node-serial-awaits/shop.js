const http = require("http");
const [mine, stock] = process.argv.slice(2).map(Number);
const agent = new http.Agent({ keepAlive: true });

function askStock(item) {
  return new Promise((resolve, reject) => {
    http
      .get({ host: "127.0.0.1", port: stock, path: `/item/${item}`, agent }, (answer) => {
        answer.resume();
        answer.on("end", () => resolve(1));
      })
      .on("error", reject);
  });
}

async function listItems() {
  let total = 0;
  for (let item = 0; item < 60; item++) total += await askStock(item);
  return total;
}

http
  .createServer(async (request, response) => response.end(String(await listItems())))
  .listen(mine, "127.0.0.1");
