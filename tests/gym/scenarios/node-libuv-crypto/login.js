const crypto = require("crypto");
const fs = require("fs");
require("http").createServer((request, response) => {
  if (request.url.startsWith("/login")) {
    crypto.pbkdf2("secret", "salt", 400000, 64, "sha512", (error, key) => response.end(key.toString("hex")));
  } else {
    fs.stat("/etc/hostname", () => response.end("ok"));
  }
}).listen(Number(process.argv[2]), "127.0.0.1");
