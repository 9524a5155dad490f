const http = require("http");
const history = [];

function remember(url) {
  history.push({ url, words: Array.from({ length: 3000 }, (_, n) => url + n) });
}

http.createServer((request, response) => {
  remember(request.url);
  response.end("ok");
}).listen(Number(process.argv[2]), "127.0.0.1");
