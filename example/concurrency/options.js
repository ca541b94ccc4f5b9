'use strict';

const { parseArgs } = require('node:util');
const { numberOf, wholeNumberOf } = require('../demo/option-values');

const DEFAULTS = { steps: '1,2,4,8,16,32,64,128,256', seconds: '5' };
const SHORT = { steps: '1,4,16', seconds: '1' };

const USAGE = `node example/concurrency/concurrency.js [options]

  --steps N,N,...  the limits to go through, in rising order (default ${DEFAULTS.steps})
  --seconds N      how long each of them is measured (default ${DEFAULTS.seconds})
  --clients N      clients that keep asking (default: half as many again as the highest limit)
  --short          a quick look: --steps ${SHORT.steps} --seconds ${SHORT.seconds}
  --help           print this
`;

/**
 * @typedef {object} ConcurrencyOptions
 * @property {number[]} steps limits of concurrency
 * @property {number} seconds length of a step
 * @property {number} clients
 * @property {boolean} help
 */

/**
 * @param {string[]} argv arguments without node and script
 * @returns {ConcurrencyOptions}
 * @throws {Error} with a message for the user
 */
function readOptions(argv) {
  const { values } = parseArgs({
    args: argv,
    options: {
      steps: { type: 'string' },
      seconds: { type: 'string' },
      clients: { type: 'string' },
      short: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  const defaults = values.short ? SHORT : DEFAULTS;
  const steps = risingNumbers(values.steps ?? defaults.steps);
  return {
    steps,
    seconds: numberOf('seconds', values.seconds ?? defaults.seconds, 0.5),
    clients: wholeNumberOf('clients', values.clients ?? String(Math.ceil(steps.at(-1) * 1.5)), 1),
    help: values.help,
  };
}

function risingNumbers(text) {
  const numbers = text.split(',').map(part => wholeNumberOf('steps', part, 1));
  if (numbers.some((number, i) => i > 0 && number <= numbers[i - 1])) {
    throw new Error(`--steps must rise, not ${text}`);
  }
  return numbers;
}

module.exports = { readOptions, USAGE };
