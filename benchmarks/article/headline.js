'use strict';

// The table at the top of README.md, from the medians that are stored beside the pictures. Nothing else there
// depends on the numbers.

const { count, table } = require('../shared/table.js');
const { replaceBetween } = require('../shared/marked-part.js');

const HEADLINE_ROUNDS = ['article-new', 'frequent-new', 'overload-new', 'large-new'];
const BEGIN = '<!-- headline: written by npm run bench:article -- --document -->';
const END = '<!-- end of headline -->';
const ROWS = [
  ['stock-scraped', '[prom-client](https://www.npmjs.com/package/prom-client) 15.1.3'],
  [
    'prometheus-io-scraped',
    'its successor, [@prometheus-io/client](https://github.com/prometheus/client_js) 0.16.1',
  ],
  ['ours-scraped', 'this library'],
  ['bare-scraped', 'no metrics library, a static page of the same size'],
  ['bare', 'no metrics library, not scraped'],
];
const OURS = 'ours-scraped';

/**
 * @param {string} text of README.md
 * @param {import('./drawing.js').Medians} medians
 * @returns {string} with their table; unchanged if a round of it is missing
 */
function withHeadline(text, { date, machine, rounds }) {
  const shownRounds = HEADLINE_ROUNDS.map(key => rounds.find(round => round.key === key));
  if (shownRounds.includes(undefined)) return text;
  const rows = ROWS.filter(([run]) => shownRounds.every(({ figures }) => run in figures));
  const head = ['P99 while scraped', ...shownRounds.map(titleOfColumn)];
  const body = rows.map(([run, title]) => [
    title,
    ...shownRounds.map(({ figures }) => milliseconds(run, figures[run].p99)),
  ]);
  const [{ gzip, repetitions }] = shownRounds;
  const conditions =
    `${date}, ${machine}. Medians of ${repetitions} repetitions.\nEach request uses a new connection. ` +
    (gzip ? 'Scraped with gzip where the client offers it.' : 'Scraped without compression.');
  return replaceBetween(text, [BEGIN, END], `${table(head, body)}\n\n${conditions}`);
}

function titleOfColumn({ samples, every }, column) {
  const size = column === 0 ? `${count(samples)} samples a worker` : count(samples);
  return `${size}, ${every === 1 ? 'every second' : `every ${every} s`}`;
}

function milliseconds(run, value) {
  return run === OURS ? `**${shown(value)} ms**` : `${shown(value)} ms`;
}

/**
 * @param {number} value ms
 * @returns {string} as the table and the picture have it
 */
function shown(value) {
  return value < 10 ? value.toFixed(1) : count(Math.round(value));
}

module.exports = { HEADLINE_ROUNDS, shown, withHeadline };
