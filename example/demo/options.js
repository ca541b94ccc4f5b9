'use strict';

const { parseArgs } = require('node:util');
const { CLIENT_NAMES } = require('./client-library');

const USAGE = `npm run demo -- [options]

  --client NAME   ${CLIENT_NAMES.join(' or ')} (default ${CLIENT_NAMES[0]})
  --rate N        requests per second, each on a connection of its own (default 600)
  --seconds N     length of each of the two phases (default 15)
  --workers N     workers in the cluster (default 4)
  --samples N     samples that every worker exposes, at least 1000 (default 10000)
  --keep          go on serving afterwards, until Ctrl-C
  --help          print this
`;

/**
 * @typedef {object} DemoOptions
 * @property {string} client the library to run with
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
 * @throws {Error} with a text for the person at the keyboard
 */
function readOptions(argv) {
  const { values } = parseArgs({
    args: argv,
    options: {
      client: { type: 'string', default: CLIENT_NAMES[0] },
      rate: { type: 'string', default: '600' },
      seconds: { type: 'string', default: '15' },
      workers: { type: 'string', default: '4' },
      samples: { type: 'string', default: '10000' },
      keep: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (!CLIENT_NAMES.includes(values.client)) {
    throw new Error(`--client must be ${CLIENT_NAMES.join(' or ')}, not ${values.client}`);
  }
  return {
    client: values.client,
    rate: wholeNumber('rate', values.rate, 1),
    seconds: wholeNumber('seconds', values.seconds, 1),
    workers: wholeNumber('workers', values.workers, 1),
    samples: wholeNumber('samples', values.samples, 1000),
    keep: values.keep,
    help: values.help,
  };
}

function wholeNumber(name, text, least) {
  const number = Number(text);
  if (!Number.isInteger(number) || number < least) {
    throw new Error(`--${name} must be a whole number of at least ${least}, not ${text}`);
  }
  return number;
}

module.exports = { readOptions, USAGE };
