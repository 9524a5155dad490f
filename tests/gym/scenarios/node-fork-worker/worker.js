const {execFileSync} = require('child_process');

function resizePhoto(id) {
  return execFileSync('sh', ['-c', 'sleep 0.15; echo photo']).toString();
}

process.on('message', ({id}) => process.send({id, text: resizePhoto(id)}));
