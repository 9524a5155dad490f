const https = require("https");
const fs = require("fs");
const [port, key, cert] = process.argv.slice(2);
https.createServer({ key: fs.readFileSync(key), cert: fs.readFileSync(cert) }, (request, response) => {
  response.end('{"eur": 1.09}');
}).listen(port, "127.0.0.1");
