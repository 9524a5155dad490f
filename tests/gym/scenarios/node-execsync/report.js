const http = require("http");
const { execSync } = require("child_process");

function buildReport() {
  return execSync("sleep 0.3; date").toString();
}

http.createServer((request, response) => response.end(buildReport())).listen(Number(process.argv[2]), "127.0.0.1");
