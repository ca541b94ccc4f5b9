'use strict';

// Measures recording, compared with a lower bound: the same additions without a library.

const { nanosecondsPerOperation } = require('../micro/timing.js');
const { reusedStrings, OPERATIONS } = require('../micro/label-strings.js');
const { sumOf } = require('../micro/recorded.js');
const { LABEL_NAMES } = require('../shared/label-sets.js');
const { median } = require('../shared/statistics.js');
const { number } = require('../shared/table.js');

const SECONDS = 0.4;
const ROUNDS = 5; // a library and its lower bound in turn, so that other programs affect both

const HEAD = ['recording', 'ns', 'the least it could be', 'ns', 'times'];

/**
 * @type {{title: string, floor: string, seconds: number,
 *   prepare: (library: any) => {ours: any, least: any}}[]}
 */
const RECORDINGS = [
  ...[2000, 100_000].map(size => ({
    title: `inc(labels), ${size.toLocaleString('en')} label sets`,
    floor: 'four looks into a Map, one into a table',
    seconds: SECONDS * ROUNDS * 2,
    prepare: library => labelled(library, size),
  })),
  {
    title: 'inc(), no labels',
    floor: 'add to a number in a typed array',
    seconds: SECONDS * ROUNDS * 2,
    prepare: unlabelled,
  },
  {
    title: 'inc() of a child that the program stores',
    floor: 'add to a number in a typed array',
    seconds: SECONDS * ROUNDS * 2,
    prepare: child,
  },
];

/**
 * @param {(typeof RECORDINGS)[number]} recording
 * @param {any} library
 * @param {(done: number, of: number) => void} onRepetition
 * @returns {Promise<string[]>} a row of the table
 */
async function measureRecording({ title, floor, prepare }, library, onRepetition) {
  library.register.clear();
  const { ours, least } = prepare(library);
  const [times, leastTimes] = [[], []];
  for (let round = 0; round < ROUNDS; round++) {
    onRepetition(round, ROUNDS);
    times.push(await nanosecondsPerOperation(ours, SECONDS));
    leastTimes.push(await nanosecondsPerOperation(least, SECONDS));
  }
  const [time, leastTime] = [median(times), median(leastTimes)];
  return [title, number(time), floor, number(leastTime), number(time / leastTime)];
}

function labelled(library, size) {
  const counter = counterOf(library, LABEL_NAMES);
  const { sets, operations, walk } = reusedStrings(size);
  for (const labels of sets) counter.inc(labels);
  const least = leastCounter(sets);
  return {
    ours: {
      operations,
      run: () => walk(labels => counter.inc(labels)),
      recorded: () => sumOf(counter),
    },
    least: { operations, run: () => walk(least.inc), recorded: least.total },
  };
}

/**
 * Only the look-ups: of each label value in a Map, and of the four integers in a table. No label set is new,
 * all have the same labels, and no two sets share a slot of the table.
 *
 * @param {{method: string, route: string, status: string, zone: string}[]} sets
 */
function leastCounter(sets) {
  const [methods, routes, statuses, zones] = LABEL_NAMES.map(name => integersOf(sets, name));
  const placeOf = ({ method, route, status, zone }) =>
    methods.get(method) +
    methods.size *
      (statuses.get(status) + statuses.size * (zones.get(zone) + zones.size * routes.get(route)));
  const rows = new Int32Array(methods.size * statuses.size * zones.size * routes.size);
  sets.forEach((labels, row) => (rows[placeOf(labels)] = row));
  const numbers = new Float64Array(sets.length);
  return {
    inc: labels => {
      numbers[rows[placeOf(labels)]]++;
    },
    total: () => numbers.reduce((total, value) => total + value, 0),
  };
}

/** Each value of a label, numbered from 0. */
function integersOf(sets, name) {
  const values = new Set(sets.map(labels => labels[name]));
  return new Map([...values].map((value, i) => [value, i]));
}

function unlabelled(library) {
  const counter = counterOf(library, []);
  return { ours: repeated(() => counter.inc(), counter), least: leastAddition() };
}

function child(library) {
  const counter = counterOf(library, LABEL_NAMES);
  const child = counter.labels({ method: 'GET', route: '/', status: '200', zone: 'a' });
  return { ours: repeated(() => child.inc(), counter), least: leastAddition() };
}

function repeated(inc, counter) {
  const run = () => {
    for (let operation = 0; operation < OPERATIONS; operation++) inc();
  };
  return { operations: OPERATIONS, run, recorded: () => sumOf(counter) };
}

function leastAddition() {
  const numbers = new Float64Array(8);
  const run = () => {
    for (let operation = 0; operation < OPERATIONS; operation++) numbers[1] += 1;
  };
  return { operations: OPERATIONS, run, recorded: () => numbers[1] };
}

function counterOf(library, labelNames) {
  return new library.Counter({ name: 'requests_total', help: 'Requests', labelNames });
}

module.exports = { HEAD, RECORDINGS, measureRecording };
