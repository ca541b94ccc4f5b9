'use strict';

// What a soak has shown, as Markdown.

const { median } = require('../shared/statistics.js');
const { count, number, table } = require('../shared/table.js');
const { slopePerHour } = require('./processes.js');

const MIB = 2 ** 20;

// Caches fill and the totals of dead workers reach their steady number first.
const WARM_UP_SHARE = 0.2;
const WARM_UP_SECONDS = 45;

// What the garbage collector and the allocator move by within minutes.
const NOISE = { heap: 4 * MIB, rss: 24 * MIB, descriptors: 6, files: 12 };
const NOISE_SHARE = 0.1;

/**
 * The lines that are judged: of the processes that live as long as the soak.
 *
 * @param {any} record
 * @returns {{name: string, kind: 'heap' | 'rss' | 'descriptors' | 'files', points: {at: number, value:
 *   number}[]}[]}
 */
function linesOf({ processes, heaps }) {
  return ['primary', 'worker 1'].flatMap(name => {
    const own = processes.filter(each => each.name === name);
    const line = (kind, points) => ({ name, kind, points });
    return [
      line(
        'heap',
        heaps.filter(each => each.name === name).map(({ at, bytes }) => ({ at, value: bytes })),
      ),
      line(
        'rss',
        own.map(({ at, rss }) => ({ at, value: rss })),
      ),
      line(
        'descriptors',
        own.map(({ at, descriptors }) => ({ at, value: descriptors })),
      ),
      ...(name === 'primary'
        ? [
            line(
              'files',
              own.map(({ at, files }) => ({ at, value: files })),
            ),
          ]
        : []),
    ];
  });
}

/** @param {number} seconds of the soak */
function warmUpOf(seconds) {
  return Math.min(Math.max(WARM_UP_SECONDS, seconds * WARM_UP_SHARE), seconds / 2);
}

/** @param {any} record */
function judgedLines(record) {
  const from = warmUpOf(record.seconds);
  return linesOf(record).map(line => {
    const points = line.points.filter(({ at }) => at >= from);
    const middle = median(points.map(({ value }) => value));
    const slope = slopePerHour(points);
    const grown = (slope * (record.seconds - from)) / 3600;
    // A run that is too short to judge passes.
    const isFlat = !(grown > Math.max(NOISE[line.kind], middle * NOISE_SHARE));
    return { ...line, middle, slope, isFlat };
  });
}

/**
 * @param {any} record
 * @returns {{text: string, failures: string[]}} `failures` is empty if all numbers were exact and all lines
 *   flat
 */
function summaryOf(record) {
  const { scrapes, failures, events, differences, checked, leftBehind, skipped, last } = record;
  const lines = judgedLines(record);
  const happened = what => events.filter(event => event.what === what).length;
  const shown = (kind, value) =>
    kind === 'heap' || kind === 'rss' ? `${number(value / MIB)} MiB` : number(value);
  const times = scrapes.map(({ seconds }) => seconds * 1000);
  const rows = lines.map(({ name, kind, middle, slope, isFlat }) => [
    name,
    kind === 'rss' ? 'RSS' : kind,
    shown(kind, middle),
    `${shown(kind, slope)} per hour`,
    isFlat ? 'yes' : 'NO',
  ]);
  const text = [
    `- ${count(scrapes.length)} pages, ${failures.length} failed scrapes; a scrape took ${number(median(times))} ms in the median, ${number(Math.max(...times))} ms at most.`,
    `- ${count(checked)} numbers compared with what the load generator had recorded: ${differences.length} differences.`,
    `- At the end ${count(last?.recorded ?? NaN)} requests were recorded, and ${count(last?.shown ?? NaN)} shown.`,
    `- ${happened('worker killed')} workers killed under load, ${happened('worker redeployed')} redeployed, ${happened('thread killed')} threads killed, disk full ${happened('disk full')} times.`,
    `- Left behind: ${leftBehind.length === 0 ? 'nothing' : leftBehind.join(', ')}.`,
    ...skipped.map(reason => `- Not tried: ${reason}.`),
    '',
    table(['process', 'what', 'median', 'slope after the warm-up', 'flat'], rows),
  ].join('\n');
  return {
    text,
    failures: [
      ...differences.slice(0, 20),
      ...failures.slice(0, 20).map(({ at, reason }) => `scrape at ${Math.round(at)} s: ${reason}`),
      ...lines.filter(({ isFlat }) => !isFlat).map(({ name, kind }) => `${kind} of ${name} grows`),
      ...leftBehind.map(name => `${name} was left behind`),
      ...(scrapes.length === 0 ? ['no page'] : []),
    ],
  };
}

/**
 * @param {any} record
 * @param {{machine: string, date: string, minutes: number, workers: number}} about
 * @returns {string} the document
 */
function documentOf(record, { machine, date, minutes, workers }) {
  return `# Soak

A cluster of ${workers} workers under load for ${minutes} minutes, scraped each second: about ${count(5000 * workers)} recordings a second in
2,000 label sets, of which 10 % a minute are replaced by new ones. Meanwhile workers are killed under load and
redeployed, the aggregator thread is killed, and the disk of the snapshots is filled and freed. Checkpoints
are written each second; totals of label sets that no live worker has are dropped after 30 seconds.

The load generator is deterministic, so every number of every page is compared with what was recorded, also
the last numbers of workers that were killed. Repeat it with \`npm run soak -- --minutes ${minutes}\`; CI runs 3
minutes.

![Memory, descriptors, files and counts over time](soak.svg)

Measured on ${date}: ${machine}.

${summaryOf(record).text}

The heap is what is in use after a collection, buffers included. Process lines are those of the primary and of
worker 1, which live as long as the soak; the other workers are replaced.
`;
}

module.exports = { linesOf, warmUpOf, summaryOf, documentOf };
