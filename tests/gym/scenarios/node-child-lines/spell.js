const http = require("http");
const readline = require("readline");
const { spawn } = require("child_process");

const checker = spawn("python3", ["-u", "checker.py"], { stdio: ["pipe", "pipe", "inherit"] });
const waiting = [];
readline.createInterface({ input: checker.stdout }).on("line", (line) => waiting.shift()(line));

function checkWord(word) {
  return new Promise((done) => {
    waiting.push(done);
    checker.stdin.write(`${word}\n`);
  });
}

http
  .createServer(async (request, response) => response.end(await checkWord("tree")))
  .listen(Number(process.argv[2]), "127.0.0.1");
