const crypto = require("crypto");
require("http").createServer((request, response) => {
  response.end(crypto.createHash("sha256").update(request.url).digest("hex"));
}).listen(Number(process.argv[2]), "127.0.0.1");
setInterval(() => {}, 1000);
