'use strict';

const { parseArgs } = require('node:util');
const { numberOf, wholeNumberOf } = require('../demo/option-values');

const DEFAULTS = { sizes: 'default,4,16,32,64,128', seconds: '8', rounds: '2' };
const SHORT = { sizes: 'default,2,32', seconds: '1', rounds: '1' };

const USAGE = `node example/heap-sizing/heap-sizing.js [options]

  --sizes N,N,...  MiB for --max-semi-space-size, or 'default' for Node's own (default ${DEFAULTS.sizes})
  --seconds N      how long each of them is measured in a round (default ${DEFAULTS.seconds})
  --rounds N       how often, in turning order (default ${DEFAULTS.rounds})
  --rate N         requests per second (default: most of what the service can do with Node's own setting, tried first)
  --short          a quick look: --sizes ${SHORT.sizes} --seconds ${SHORT.seconds} --rounds ${SHORT.rounds}
  --help           print this
`;

/**
 * @typedef {object} HeapSizingOptions
 * @property {string[]} sizes in MiB, or 'default'
 * @property {number} seconds length of one measurement
 * @property {number} rounds
 * @property {number} [rate] requests per second
 * @property {boolean} help
 */

/**
 * @param {string[]} argv arguments without node and script
 * @returns {HeapSizingOptions}
 * @throws {Error} with a message for the user
 */
function readOptions(argv) {
  const { values } = parseArgs({
    args: argv,
    options: {
      sizes: { type: 'string' },
      seconds: { type: 'string' },
      rounds: { type: 'string' },
      rate: { type: 'string' },
      short: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  const defaults = values.short ? SHORT : DEFAULTS;
  return {
    sizes: sizesOf(values.sizes ?? defaults.sizes),
    seconds: numberOf('seconds', values.seconds ?? defaults.seconds, 0.5),
    rounds: wholeNumberOf('rounds', values.rounds ?? defaults.rounds, 1),
    rate: values.rate === undefined ? undefined : numberOf('rate', values.rate, 1),
    help: values.help,
  };
}

function sizesOf(text) {
  const sizes = text
    .split(',')
    .map(size => (size === 'default' ? size : String(wholeNumberOf('sizes', size, 1))));
  if (new Set(sizes).size < sizes.length) throw new Error(`--sizes must be different, not ${text}`);
  return sizes;
}

module.exports = { readOptions, USAGE };
