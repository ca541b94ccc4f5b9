'use strict';

// Draws the pictures of docs/internals/ again: node benchmarks/pictures/draw.js [directory]

const path = require('node:path');
const { drawAll } = require('./stored.js');

drawAll(process.argv[2]).then(files => {
  for (const file of files) console.log(`Written to ${path.relative(process.cwd(), file)}`);
});
