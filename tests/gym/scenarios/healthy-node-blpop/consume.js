const net = require("net");
const socket = net.connect(Number(process.argv[2]), "127.0.0.1");
const ask = () => socket.write("*3\r\n$5\r\nBRPOP\r\n$4\r\njobs\r\n$1\r\n1\r\n");
socket.on("data", ask);
ask();
