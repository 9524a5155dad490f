const fs = require("fs");
const file = fs.openSync(process.argv[2], "a");

function audit() {
  for (let i = 0; i < 20; i++) {
    fs.writeSync(file, "one more line of the audit\n".repeat(40));
    fs.fsyncSync(file);
  }
  setImmediate(audit);
}
audit();
