const fs = require("fs");
setInterval(() => fs.openSync("/etc/services", "r"), 15);
