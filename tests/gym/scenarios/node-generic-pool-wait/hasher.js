const {pbkdf2Sync} = require('crypto');

function hashSecret(secret) {
  return pbkdf2Sync(secret, 'salt', 90000, 32, 'sha512').toString('hex');
}

process.on('message', (secret) => process.send(hashSecret(secret)));
