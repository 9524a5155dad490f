const dns = require("dns");
require("http").createServer((request, response) => {
  dns.lookup(`rate${Math.random()}.bank.example`, (error) => response.end(String(error && error.code)));
}).listen(Number(process.argv[2]), "127.0.0.1");
