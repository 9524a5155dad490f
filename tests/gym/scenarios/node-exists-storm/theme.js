const fs = require("fs");
function findTemplate(n) {
  return fs.existsSync(`/usr/share/themes/shop/${n % 40}.html`);
}
setInterval(() => { for (let n = 0; n < 600; n++) findTemplate(n); }, 20);
