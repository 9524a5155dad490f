const http = require('http');
const { Mailbox } = require('./mailbox');

const box = new Mailbox(process.argv[3]);
http.createServer((request, response) => {
  const subjects = box.listSubjects();
  response.setHeader('content-type', 'application/json');
  response.end(JSON.stringify({ count: subjects.length, last: subjects.at(-1) }));
}).listen(Number(process.argv[2]), '127.0.0.1');
