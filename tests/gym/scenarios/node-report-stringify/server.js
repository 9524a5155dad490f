const http = require("http");
const { YearReport } = require("./report");

function route(request, response) {
  const [, name, account] = request.url.split("/");
  if (name === "health") return response.end("ok");
  response.end(JSON.stringify({ account, total: new YearReport(account).total() }));
}

http.createServer(route).listen(+process.argv[2], "127.0.0.1");
