'use strict';

module.exports = {
  apps: [{ name: 'example', script: `${__dirname}/app.js`, instances: 4, exec_mode: 'cluster' }],
};
