// Keeps the pictures of each job until its end.
const pictures = [];

function loadPicture(number) {
  const picture = Buffer.alloc(6 << 20, number & 255);
  pictures.push(picture);
  return picture.reduce((sum, byte, at) => (at % 4096 ? sum : sum + byte), 0);
}

let number = 0;
setInterval(() => loadPicture((number += 1)), 80);
