'use strict';

// `npm run soak -- --minutes N`: a cluster under load that is scraped each second while its workers are
// killed and redeployed, its thread is killed, and its disk is full. Every number of every page is compared
// with what the load generator recorded. docs/internals/soak.md has the result of an hour.

const { fork } = require('node:child_process');
const { once } = require('node:events');
const fs = require('node:fs');
const path = require('node:path');
const { setTimeout: pause } = require('node:timers/promises');
const { parseArgs } = require('node:util');
const { describeMachine } = require('../shared/machine.js');
const { Books } = require('./books.js');
const { makeDisk } = require('./disk.js');
const { drawInto } = require('../pictures/chart.js');
const { documentNumbers } = require('../pictures/stored.js');
const { drawnOf, soakSpec } = require('./drawing.js');
const { filesIn, measureProcess } = require('./processes.js');
const { documentOf, summaryOf } = require('./report.js');

const USAGE = `Usage: npm run soak -- [options]
  --minutes N         how long (default 3)
  --workers N         default 4
  --output DIRECTORY  for soak.md and soak.svg, instead of benchmarks/results
  --document          writes docs/internals/soak.md and docs/internals/soak.svg`;

const SCRAPE_SECONDS = 1;
const HEAP_SECONDS = 10;
const FAULT_SECONDS = 15;
const FULL_DISK_SECONDS = 5;
// How long a dead worker's last numbers may take: long, because a busy machine is slow, but less than totals
// of label sets that no live worker has are retained.
const SETTLE_SECONDS = 15;
const RETIRED_SECONDS = 30;
const CHECKPOINT_MILLISECONDS = 1000;

class Soak {
  #disk = makeDisk();
  #books = new Books();
  #primary;
  #port = 0;
  #started = performance.now();
  #nextNumber = 1;
  /** @type {Map<number, number>} number of each live worker, by pid */
  #workers = new Map();
  /** @type {Map<number, number>} of dead workers whose books are open: when they died, by number */
  #dying = new Map();
  /** Everything that is drawn and reported. */
  record = { scrapes: [], processes: [], heaps: [], events: [], failures: [], leftBehind: [], skipped: [] };

  constructor() {
    const options = {
      directory: this.#disk.directory,
      checkpointInterval: CHECKPOINT_MILLISECONDS,
      retiredMaxAge: RETIRED_SECONDS * 1000,
    };
    if (!this.#disk.isSmall) this.record.skipped.push(`the disk is not filled: ${this.#disk.reason}`);
    this.#primary = fork(path.join(__dirname, 'primary.js'), [], {
      env: { ...process.env, SOAK_OPTIONS: JSON.stringify(options) },
      execArgv: ['--expose-gc'],
    });
    this.#primary.on('message', message => this.#receive(message));
  }

  get #seconds() {
    return (performance.now() - this.#started) / 1000;
  }

  /** @param {{minutes: number, workers: number}} options */
  async run({ minutes, workers }) {
    while (this.#port === 0) await once(this.#primary, 'message');
    for (let i = 0; i < workers; i++) await this.#fork();
    this.#started = performance.now();
    this.record.seconds = minutes * 60;
    const faults = this.#faults();
    let nextFault = FAULT_SECONDS;
    let nextHeap = 0;
    while (this.#seconds < minutes * 60) {
      const due = performance.now() + SCRAPE_SECONDS * 1000;
      await this.#scrape();
      this.#measure();
      if (this.#seconds >= nextHeap) {
        this.#primary.send({ action: 'heaps' });
        nextHeap += HEAP_SECONDS;
      }
      if (this.#seconds >= nextFault) {
        nextFault += FAULT_SECONDS;
        await faults.next();
      }
      await pause(Math.max(due - performance.now(), 0));
    }
    await this.#end();
    Object.assign(this.record, { checked: this.#books.checked, differences: this.#books.differences });
    return this.record;
  }

  /**
   * One fault after the other. The first worker is left alone, so that its memory shows over the whole run.
   */
  async *#faults() {
    for (;;) {
      await this.#replace('SIGKILL');
      yield;
      if (this.#disk.isSmall) {
        this.#event('disk full');
        this.#disk.fill();
        setTimeout(() => {
          this.#disk.free();
          this.#event('disk freed');
        }, FULL_DISK_SECONDS * 1000);
        yield;
      }
      await this.#replace('SIGTERM');
      yield;
      this.#event('thread killed');
      this.#primary.send({ action: 'terminateThread' });
      yield;
    }
  }

  /** @param {'SIGKILL' | 'SIGTERM'} signal */
  async #replace(signal) {
    const [pid] = [...this.#workers.keys()].slice(1);
    this.#event(signal === 'SIGKILL' ? 'worker killed' : 'worker redeployed');
    process.kill(pid, signal);
    await this.#fork();
  }

  async #fork() {
    const number = this.#nextNumber++;
    this.#primary.send({ action: 'fork', number, epoch: this.#books.open(number) });
    while (![...this.#workers.values()].includes(number)) await once(this.#primary, 'message');
  }

  #receive(message) {
    if (message.port) this.#port = message.port;
    if (message.forked) this.#workers.set(message.pid, message.forked);
    if (message.heap)
      this.record.heaps.push({ at: this.#seconds, name: this.#nameOf(message.pid), bytes: message.heap });
    if (message.gone) {
      this.#dying.set(this.#workers.get(message.gone), performance.now());
      this.#workers.delete(message.gone);
    }
  }

  async #scrape() {
    const start = performance.now();
    try {
      const response = await fetch(`http://127.0.0.1:${this.#port}/metrics`);
      const page = await response.text();
      if (!response.ok) throw new Error(`status ${response.status}`);
      this.record.scrapes.push({
        at: this.#seconds,
        seconds: (performance.now() - start) / 1000,
        ...this.#books.check(page),
      });
    } catch (error) {
      this.record.failures.push({ at: this.#seconds, reason: error.message });
      return;
    }
    for (const [number, at] of this.#dying) {
      if (performance.now() - at < SETTLE_SECONDS * 1000) continue;
      this.#books.close(number);
      this.#dying.delete(number);
    }
  }

  #measure() {
    const files = filesIn(this.#disk.directory);
    for (const pid of [this.#primary.pid, ...this.#workers.keys()]) {
      const measured = measureProcess(pid);
      if (measured)
        this.record.processes.push({ at: this.#seconds, name: this.#nameOf(pid), files, ...measured });
    }
  }

  #nameOf(pid) {
    return pid === this.#primary.pid ? 'primary' : `worker ${this.#workers.get(pid) ?? '(gone)'}`;
  }

  #event(what) {
    this.record.events.push({ at: this.#seconds, what });
  }

  /**
   * All workers end by themselves; then the page has all that they ever recorded, and nothing is left behind.
   */
  async #end() {
    this.#disk.free();
    for (const pid of [...this.#workers.keys()]) process.kill(pid, 'SIGTERM');
    while (this.#workers.size > 0) await once(this.#primary, 'message');
    const exited = once(this.#primary, 'exit');
    const lastPage = new Promise(resolve => {
      this.#primary.on('message', message => message.lastPage !== undefined && resolve(message.lastPage));
    });
    this.#primary.send({ action: 'end' });
    this.record.last = this.#books.check(await lastPage);
    await exited;
    this.record.leftBehind = fs.readdirSync(this.#disk.directory);
  }

  /** Ends whatever still runs. */
  stop() {
    for (const pid of this.#workers.keys()) process.kill(pid, 'SIGKILL');
    this.#primary.kill('SIGKILL');
    this.#disk.remove();
  }
}

async function main() {
  const { values } = parseArgs({
    options: {
      minutes: { type: 'string', default: '3' },
      workers: { type: 'string', default: '4' },
      output: { type: 'string', default: path.join(__dirname, '../results') },
      document: { type: 'boolean' },
      help: { type: 'boolean' },
    },
  });
  if (values.help) {
    console.log(USAGE);
    return;
  }
  const setting = { minutes: Number(values.minutes), workers: Number(values.workers) };
  if (!(setting.minutes > 0) || !(setting.workers > 1)) throw new Error(`${USAGE}\n--workers: at least 2`);
  const about = { machine: describeMachine(), date: new Date().toISOString().slice(0, 10), ...setting };
  const soak = new Soak();
  try {
    const record = await soak.run(setting);
    const output = values.document ? path.join(__dirname, '../../docs/internals') : values.output;
    fs.mkdirSync(output, { recursive: true });
    fs.writeFileSync(path.join(output, 'soak.md'), documentOf(record, about));
    const drawn = drawnOf(record, about);
    if (values.document) await documentNumbers('soak', drawn);
    else await drawInto(path.join(output, 'soak.svg'), soakSpec(drawn));
    const { text, failures } = summaryOf(record);
    console.log(text);
    if (failures.length > 0) {
      console.error(`\nfailed:\n${failures.join('\n')}`);
      process.exitCode = 1;
    }
  } finally {
    soak.stop();
  }
}

main().catch(error => {
  console.error(error);
  process.exit(2);
});
