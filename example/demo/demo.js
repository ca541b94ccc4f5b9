'use strict';

// npm run demo: two clusters under the same load, one after the other. The first uses prom-client, the second
// this library. Each is first unscraped and then scraped every second; a table shows what scrapes do to its
// requests.

const os = require('node:os');
const { ClientRun } = require('./client-run');
const { EXIT_CODE, interruption, optionsOrUsage, print } = require('./command-line');
const { leftovers, snapshotDirectories } = require('./leftovers');
const { LiveLine } = require('./live-line');
const { readOptions, USAGE } = require('./options');
const { comparisonTable, comparisonText } = require('./results-table');
const { totalsText } = require('./totals-check');

const EXPOSITION_LINES = 12;

/** The whole demo: the runs of all clients, and what has to end with them. */
class Demo {
  #options;
  #liveLine = new LiveLine(process.stdout);
  #directoriesBefore = snapshotDirectories();
  /** @type {ClientRun[]} */
  #runs = [];
  #isEnding = false;

  /** @param {import('./options').DemoOptions} options */
  constructor(options) {
    this.#options = options;
  }

  /** @returns {Promise<boolean>} whether all metrics were right */
  async measure() {
    const { clients } = this.#options;
    print(introduction(this.#options));
    const measurements = [];
    for (const client of clients) {
      if (clients.length > 1) print(`\n${client}\n`);
      measurements.push(await this.#measureWith(client));
      // The last one goes on serving with --keep.
      if (client !== clients.at(-1)) await this.#runs.at(-1).cleanUp();
    }
    print(`\nthe last page began with\n\n${firstLines(measurements.at(-1).totals.exposition)}\n`);
    for (const { client, totals, warmUp, unscraped, scraped } of measurements) {
      print(
        `\n${clients.length > 1 ? `${client}\n` : ''}${totalsText(totals, [warmUp, unscraped, scraped])}\n`,
      );
    }
    for (const { client, scraped } of measurements) reportFailedScrapes(client, scraped.failedScrapes);
    // Last, because a terminal shows the last lines.
    print(`\n${comparisonTable(measurements)}\n\n${comparisonText(measurements)}\n`);
    return measurements.every(({ totals }) => totals.counted === totals.arrived);
  }

  #measureWith(client) {
    if (this.#isEnding) throw new Error('interrupted');
    const run = new ClientRun(client, this.#options, this.#liveLine);
    this.#runs.push(run);
    return run.measure();
  }

  /** Prints where the last cluster serves. */
  showAddresses() {
    const { metricsUrl, applicationUrl } = this.#runs.at(-1);
    print(`\nserving ${metricsUrl}\n    and ${applicationUrl}/catalog/items/17, until Ctrl-C\n`);
  }

  /** Stops showing progress, before a last message. */
  stopShowing() {
    this.#isEnding = true;
    this.#liveLine.close();
  }

  /** @returns {Promise<boolean>} whether all processes and directories were removed */
  async cleanUp() {
    const ended = await Promise.all(this.#runs.map(run => run.cleanUp()));
    const pids = this.#runs.flatMap(run => run.pids);
    const left = leftovers({ pids, directoriesBefore: this.#directoriesBefore });
    if (ended.includes(false)) left.push('a cluster did not end when asked, and was killed');
    print(
      left.length === 0 ? '\nnothing left running, nothing left on disk\n' : `\nLEFT: ${left.join('; ')}\n`,
    );
    return left.length === 0;
  }
}

async function main() {
  const options = optionsOrUsage(USAGE, readOptions);
  if (options === undefined) return;
  const interrupted = interruption();
  const demo = new Demo(options);
  try {
    const right = await Promise.race([demo.measure(), interrupted]);
    demo.stopShowing();
    if (right === undefined) {
      print('\ninterrupted\n');
      process.exitCode = EXIT_CODE.interrupted;
    } else {
      if (options.keep) {
        demo.showAddresses();
        await interrupted;
        print('\n');
      }
      process.exitCode = right ? EXIT_CODE.ok : EXIT_CODE.failed;
    }
  } catch (error) {
    demo.stopShowing();
    process.stderr.write(`\n${error.stack}\n`);
    process.exitCode = EXIT_CODE.failed;
  }
  if (!(await demo.cleanUp())) process.exitCode = EXIT_CODE.failed;
}

function introduction({ clients, workers, samples, rate }) {
  const names = clients.length > 1 ? `${clients.join(', then ')}, each with` : `${clients[0]}:`;
  return (
    `${names} ${workers} workers, about ${samples} samples each, Node ${process.version}, ` +
    `${os.availableParallelism()} cores\n${rate} requests a second, each on a connection of its own\n` +
    (clients.length > 1 ? 'same load and same recorded values for both\n' : '\n')
  );
}

function reportFailedScrapes(client, failures) {
  if (failures.length === 0) return;
  print(`\n${client}: ${failures.length} scrapes failed, the first: ${failures[0].message}\n`);
}

function firstLines(exposition) {
  return exposition.split('\n').slice(0, EXPOSITION_LINES).join('\n').trimEnd();
}

main();
