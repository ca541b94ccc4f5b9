'use strict';

// The rounds, and the order of a round's segments.

const { BARE, CLIENT_KEYS, RUNS, titleOf } = require('./runs.js');
const { count } = require('../shared/table.js');

const WORKERS = 4;

/**
 * @typedef {object} Round
 * @property {string} key
 * @property {number} samples of each worker
 * @property {number} workers
 * @property {number} every seconds between two scrapes
 * @property {boolean} reused whether connections are reused; else each request has its own
 * @property {number} seconds of a segment
 * @property {number} repetitions
 * @property {string[]} clients
 * @property {boolean} gzip whether pages are asked for with gzip, as Prometheus does, where it is offered
 */

// 4,300 samples are 500 KB of exposition, the middle of what the article's workers had
const SIZES = {
  article: { samples: 4300, every: 5, seconds: 10, repetitions: 5 },
  frequent: { samples: 10_000, every: 1, seconds: 5, repetitions: 5 },
  large: { samples: 100_000, every: 5, seconds: 10, repetitions: 5 },
  overload: { samples: 50_000, every: 1, seconds: 8, repetitions: 5 },
};
const CONNECTIONS = { new: false, reused: true };
const LEFT_OUT = ['overload-reused'];
const SHORT = { keys: ['frequent-new', 'frequent-reused'], repetitions: 2, seconds: 2 };

const ROUND_KEYS = Object.keys(SIZES)
  .flatMap(size => Object.keys(CONNECTIONS).map(kind => `${size}-${kind}`))
  .filter(key => !LEFT_OUT.includes(key));

/**
 * @param {{short?: boolean, rounds?: string[], clients?: string[], repetitions?: number, seconds?: number,
 *   workers?: number, samples?: number, gzip?: boolean}} options
 * @returns {Round[]} rounds of equal samples one after the other
 * @throws {Error} for an unknown round or client, or a segment without a scrape
 */
function planFor(options) {
  options.rounds?.forEach(key => mustBeOneOf(key, ROUND_KEYS, 'round'));
  options.clients?.forEach(key => mustBeOneOf(key, CLIENT_KEYS, 'client'));
  const keys = options.rounds ?? (options.short ? SHORT.keys : ROUND_KEYS);
  return ROUND_KEYS.filter(key => keys.includes(key)).map(key => roundFor(key, options));
}

function mustBeOneOf(key, known, what) {
  if (!known.includes(key)) throw new Error(`unknown ${what} ${key}; known: ${known.join(', ')}`);
}

function roundFor(key, { short, clients, repetitions, seconds, workers, samples, gzip = true }) {
  const [size, kind] = key.split('-');
  const usual = short ? { ...SIZES[size], ...shortened(SIZES[size]) } : SIZES[size];
  const round = {
    key,
    workers: workers ?? WORKERS,
    reused: CONNECTIONS[kind],
    clients: CLIENT_KEYS.filter(client => clients?.includes(client) ?? true),
    gzip,
    ...usual,
    samples: samples ?? usual.samples,
    seconds: seconds ?? usual.seconds,
    repetitions: repetitions ?? usual.repetitions,
  };
  if (round.seconds < round.every) {
    throw new Error(
      `${key}: segments of ${round.seconds} s are too short for a scrape every ${round.every} s`,
    );
  }
  return round;
}

function shortened({ every }) {
  return { repetitions: SHORT.repetitions, seconds: Math.max(SHORT.seconds, every) };
}

/**
 * The runs of a repetition, with those of a client next to each other. Another client begins each time, and
 * every second repetition is in reverse order, so that no client is always before or after another one. The
 * static page is one that a library has written, so without a library nothing scrapes it.
 *
 * @param {Round} round
 * @param {number} repetition from 0
 * @returns {import('./runs.js').Run[]}
 */
function runsOf({ clients }, repetition) {
  const isReverse = repetition % 2 === 1;
  const inDirection = list => (isReverse ? list.toReversed() : list);
  const turn = Math.floor(repetition / 2);
  const turned = inDirection(clients).map((_, place, all) => all[(place + turn) % all.length]);
  const runs = RUNS.filter(run => !run.scraped || clients.some(client => client !== BARE));
  return turned.flatMap(client => inDirection(runs.filter(run => run.client === client)));
}

/**
 * @param {Round} round
 * @returns {string}
 */
function roundTitle({ samples, every, reused }) {
  const interval = every === 1 ? 'a scrape a second' : `a scrape every ${every} s`;
  return `${count(samples)} samples a worker, ${interval}, ${reused ? 'reused connections' : 'new connections'}`;
}

/**
 * The steps of the progress report, with an estimate of the seconds each takes.
 *
 * @param {Round} round
 * @param {boolean} isFirstOfItsTrees whether processes have to be started for it
 * @returns {{title: string, seconds: number}[]} preparation, then each segment in order
 */
function stepsOf(round, isFirstOfItsTrees) {
  const start = isFirstOfItsTrees ? 3 + (round.clients.length * round.samples * round.workers) / 100_000 : 0;
  const preparation = {
    title: `${round.key}: saturation and warm-up`,
    seconds: start + round.clients.length * 8,
  };
  const segments = Array.from({ length: round.repetitions }, (_, repetition) =>
    runsOf(round, repetition).map(({ client, scraped }) => ({
      title: `${round.key}, repetition ${repetition + 1} of ${round.repetitions}: ${titleOf(client)}, ${scraped ? 'scraped' : 'unscraped'}`,
      seconds: round.seconds + 1,
    })),
  );
  return [preparation, ...segments.flat()];
}

module.exports = { ROUND_KEYS, planFor, roundTitle, runsOf, stepsOf };
