const http = require("http");
const crypto = require("crypto");

function checkPassword(name) {
  return crypto.pbkdf2Sync(name, "salt", 60000, 32, "sha512").toString("hex");
}

http.createServer((request, response) => response.end(checkPassword(request.url))).listen(Number(process.argv[2]), "127.0.0.1");
