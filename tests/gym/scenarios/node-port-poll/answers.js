const http = require('http');
const {MessageChannel, Worker, receiveMessageOnPort} = require('worker_threads');

const {port1, port2} = new MessageChannel();
new Worker(`
  const {parentPort} = require('worker_threads');
  parentPort.once('message', ({port}) => port.on('message', n => setTimeout(() => port.postMessage(n * 2), 80)));
`, {eval: true}).postMessage({port: port2}, [port2]);

function awaitAnswer() {
  let answer;
  while (!(answer = receiveMessageOnPort(port1)));
  return answer.message;
}

http.createServer((request, response) => {
  port1.postMessage(21);
  response.end(String(awaitAnswer()));
}).listen(process.argv[2], '127.0.0.1');
