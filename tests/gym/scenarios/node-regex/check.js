const http = require("http");
const rule = /^(\w+\s?)*$/;

http
  .createServer((request, response) => {
    response.end(String(rule.test("one two three four five six s!")));
  })
  .listen(Number(process.argv[2]));
