'use strict';

// What do checkpoints cost a worker, and how much of them reaches a disk? One cluster at a time, with and
// without checkpoints in turn, each with one worker that nobody scrapes. Needs Linux, takes 7 minutes:
// `node benchmarks/checkpoints/run.js`. The temporary directory (TMPDIR) should be on a disk.

const cluster = require('node:cluster');
const { fork } = require('node:child_process');
const { once } = require('node:events');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { setTimeout: sleep } = require('node:timers/promises');
const { describeMachine } = require('../shared/machine.js');
const { Progress } = require('../shared/progress.js');
const { median } = require('../shared/statistics.js');
const { number, table } = require('../shared/table.js');

const SETTLE_SECONDS = 6; // the first checkpoint writes all label sets
const SECONDS = 10;
const ROUNDS = 3;
const SECTOR_BYTES = 512; // of /proc/diskstats, whatever the disk has

const SCENARIOS = [1000, 100_000].flatMap(sets =>
  ['idle', 'busy'].flatMap(load => ['off', 'default'].map(checkpoints => ({ sets, load, checkpoints }))),
);

/** `dirtied`, `left`: of the worker's files, and what of it was not removed before it reached the disk. */
const COLUMNS = {
  cpu: 'CPU, ms per s of load',
  interval: 'interval, s',
  longest: 'longest section, ms',
  p50: 'delay p50, ms',
  p99: 'p99',
  dirtied: 'written, kB per s',
  left: 'of it not removed',
  disk: 'disk, all programs',
};

/** In the primary: starts the worker, and measures one window. */
async function primary({ sets, load, checkpoints, directory }) {
  const { AggregatorRegistry } = require('../..');
  cluster.setupPrimary({ exec: path.join(__dirname, 'worker.js') });
  new AggregatorRegistry({ directory, ...(checkpoints === 'off' && { checkpointInterval: 0 }) });
  const worker = cluster.fork({ CHECKPOINT_SETS: String(sets), CHECKPOINT_LOAD: load });
  await once(worker, 'online');
  await sleep(SETTLE_SECONDS * 1000);
  const before = await measure(worker);
  const writtenBefore = writtenTo(directory);
  await sleep(SECONDS * 1000);
  const after = await measure(worker);
  const written = (writtenTo(directory) - writtenBefore) / SECONDS;
  const microseconds = after.cpu.user + after.cpu.system - before.cpu.user - before.cpu.system;
  const perSecond = of => (of(after) - of(before)) / SECONDS;
  process.send({
    cpu: microseconds / 1e3 / (after.done ?? SECONDS),
    interval: median(after.intervals) / 1e3,
    longest: after.longest,
    p50: after.p50,
    p99: after.p99,
    dirtied: perSecond(({ dirtied }) => dirtied) / 1e3,
    left: perSecond(({ dirtied, dropped }) => dirtied - dropped) / 1e3,
    disk: written / 1e3,
  });
  worker.process.kill();
  process.disconnect();
}

async function measure(worker) {
  worker.send({ type: 'measure' });
  for (;;) {
    const [message] = await once(worker, 'message');
    if (message.type === 'measured') return message;
  }
}

/**
 * @param {string} directory
 * @returns {number} bytes that its disk has written so far; NaN if it is in memory
 */
function writtenTo(directory) {
  const device = fs.statSync(directory).dev;
  const [major, minor] = [(device >> 8) & 0xfff, (device & 0xff) | ((device >> 12) & 0xfff00)];
  const lines = fs.readFileSync('/proc/diskstats', 'utf8').split('\n');
  const fields = lines.map(line => line.trim().split(/\s+/));
  const disk = fields.find(([first, second]) => Number(first) === major && Number(second) === minor);
  return disk === undefined ? NaN : Number(disk[9]) * SECTOR_BYTES;
}

async function windowOf(scenario, directory) {
  const child = fork(__filename, [JSON.stringify({ ...scenario, directory })]);
  const [[window]] = await Promise.all([once(child, 'message'), once(child, 'exit')]);
  return window;
}

async function main() {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'benchmark-checkpoints-'));
  const windows = SCENARIOS.map(() => []);
  const seconds = (SETTLE_SECONDS + SECONDS + 1) * SCENARIOS.length;
  const steps = Array.from({ length: ROUNDS }, (_, round) => ({ title: `round ${round + 1}`, seconds }));
  const progress = new Progress(steps, process.stderr);
  try {
    for (let round = 0; round < ROUNDS; round++) {
      progress.begin();
      for (const [place, scenario] of SCENARIOS.entries()) {
        progress.repetition(place, SCENARIOS.length);
        windows[place].push(await windowOf(scenario, directory));
      }
      progress.end();
    }
  } finally {
    fs.rmSync(directory, { recursive: true });
  }
  console.log(`${describeMachine()}, medians of ${ROUNDS} windows of ${SECONDS} s\n`);
  const rows = SCENARIOS.map(({ sets, load, checkpoints }, place) => [
    number(sets),
    load,
    checkpoints,
    ...Object.keys(COLUMNS).map(key =>
      // In JSON, what cannot be measured is null.
      number(median(windows[place].map(window => window[key]).filter(value => value !== null))),
    ),
  ]);
  console.log(table(['label sets', 'worker', 'checkpoints', ...Object.values(COLUMNS)], rows));
}

if (process.argv.length > 2) void primary(JSON.parse(process.argv[2]));
else void main();
