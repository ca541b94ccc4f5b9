'use strict';

const { parseArgs } = require('node:util');
const { CLIENT_NAMES } = require('./client-library');
const { wholeNumberOf } = require('./option-values');

const BOTH = 'both';
const CHOICES = [BOTH, ...CLIENT_NAMES];

const USAGE = `npm run demo -- [options]

  --client NAME   ${CHOICES.join(', ')} (default ${BOTH}, one after the other)
  --rate N        requests per second, each on a connection of its own (default 600)
  --seconds N     length of each phase, unscraped and scraped (default 10)
  --workers N     workers in the cluster (default 4)
  --samples N     samples that every worker exposes, at least 1000 (default 10000)
  --keep          keep the last cluster serving, until Ctrl-C
  --help          print this
`;

/**
 * @typedef {object} DemoOptions
 * @property {string[]} clients the libraries to run with, in this order
 * @property {number} rate requests per second
 * @property {number} seconds length of a phase
 * @property {number} workers
 * @property {number} samples samples per worker
 * @property {boolean} keep serve until interrupted
 * @property {boolean} help
 */

/**
 * @param {string[]} argv arguments without node and script
 * @returns {DemoOptions}
 * @throws {Error} with a message for the user
 */
function readOptions(argv) {
  const { values } = parseArgs({
    args: argv,
    options: {
      client: { type: 'string', default: BOTH },
      rate: { type: 'string', default: '600' },
      seconds: { type: 'string', default: '10' },
      workers: { type: 'string', default: '4' },
      samples: { type: 'string', default: '10000' },
      keep: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (!CHOICES.includes(values.client)) {
    throw new Error(`--client must be one of ${CHOICES.join(', ')}, not ${values.client}`);
  }
  return {
    clients: values.client === BOTH ? CLIENT_NAMES : [values.client],
    rate: wholeNumberOf('rate', values.rate, 1),
    seconds: wholeNumberOf('seconds', values.seconds, 1),
    workers: wholeNumberOf('workers', values.workers, 1),
    samples: wholeNumberOf('samples', values.samples, 1000),
    keep: values.keep,
    help: values.help,
  };
}

module.exports = { readOptions, USAGE };
