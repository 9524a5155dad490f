const fs = require('fs');
const kept = [];

function openThumb() {
  try {
    kept.push(fs.openSync(__filename, 'r'));
    setImmediate(openThumb);
  } catch (error) {
    setTimeout(openThumb, 5);
  }
}

openThumb();
