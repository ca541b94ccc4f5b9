'use strict';

// npm run demo: a cluster under load, first unscraped, then scraped every second, and what that does to its requests.

const os = require('node:os');
const { ClusterProcess } = require('./cluster-process');
const { EXIT_CODE, interruption, optionsOrUsage, print } = require('./command-line');
const { leftovers, snapshotDirectories } = require('./leftovers');
const { LiveLine } = require('./live-line');
const { LoadGenerator } = require('./load-generator');
const { readOptions, USAGE } = require('./options');
const { runPhase } = require('./phase');
const { resultsTable } = require('./results-table');
const { Scraper } = require('./scraper');
const { readTotals, totalsText } = require('./totals-check');

const WARM_UP_SECONDS = 3;
const EXPOSITION_LINES = 12;

/** Everything of one run that has to be ended, however the run ends. */
class Run {
  #options;
  #liveLine = new LiveLine(process.stdout);
  #directoriesBefore = snapshotDirectories();
  #cluster;
  #scraper;
  #loadGenerator;
  #interrupted;

  /**
   * @param {import('./options').DemoOptions} options
   * @param {Promise<void>} interrupted resolves when the person at the keyboard has had enough
   */
  constructor(options, interrupted) {
    this.#options = options;
    this.#interrupted = interrupted;
  }

  /** @returns {Promise<boolean>} whether the numbers were right */
  async measure() {
    const { client, workers, samples, rate, seconds } = this.#options;
    print(`${client}: ${workers} workers, about ${samples} samples each, Node ${process.version}, `);
    print(
      `${os.availableParallelism()} cores\n${rate} requests a second, each on a connection of its own\n\n`,
    );
    this.#cluster = new ClusterProcess({ client, workers, samples, defaultMetrics: 'runtime' });
    this.#loadGenerator = new LoadGenerator();
    await this.#cluster.ready();
    this.#scraper = new Scraper(this.#cluster.metricsUrl);

    const warmUp = await this.#phase('warm-up', Math.min(WARM_UP_SECONDS, seconds));
    const unscraped = await this.#phase('unscraped', seconds);
    const scraped = await this.#phase('scraped', seconds, this.#scraper);
    print(`\n${resultsTable({ unscraped, 'scraped every second': scraped })}\n`);
    reportFailedScrapes(scraped.failedScrapes);

    const totals = await readTotals(this.#cluster, this.#scraper);
    print(`\n${totalsText(totals, [warmUp, unscraped, scraped])}\n`);
    print(`\n${firstLines(totals.exposition)}\n`);
    return totals.counted === totals.arrived;
  }

  #phase(name, seconds, scraper) {
    const { rate } = this.#options;
    const load = this.#loadGenerator.start({
      url: this.#cluster.applicationUrl,
      rate,
      amount: rate * seconds,
    });
    return runPhase({ name, load, scraper, liveLine: this.#liveLine });
  }

  /** Leaves the cluster serving until Ctrl-C. */
  async keepServing() {
    print(`\nserving ${this.#cluster.metricsUrl}\n`);
    print(`    and ${this.#cluster.applicationUrl}/catalog/items/17, until Ctrl-C\n`);
    await this.#interrupted;
    print('\n');
  }

  /** Shows no more progress, to make room for a last word. */
  stopShowing() {
    this.#liveLine.close();
  }

  /** @returns {Promise<boolean>} whether everything is gone */
  async cleanUp() {
    await this.#loadGenerator?.stop();
    // A scrape under way is waited for: without workers to answer, prom-client would keep its primary for five seconds.
    await this.#scraper?.stop();
    this.#scraper?.close();
    const wentByItself = (await this.#cluster?.stop()) ?? true;
    const pids = [...(this.#cluster?.pids ?? []), this.#loadGenerator?.pid].filter(Boolean);
    const left = leftovers({ pids, directoriesBefore: this.#directoriesBefore });
    if (!wentByItself) left.push('the cluster did not end when told to, and was killed');
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
  const run = new Run(options, interrupted);
  try {
    const right = await Promise.race([run.measure(), interrupted]);
    run.stopShowing();
    if (right === undefined) {
      print('\ninterrupted\n');
      process.exitCode = EXIT_CODE.interrupted;
    } else {
      if (options.keep) await run.keepServing();
      process.exitCode = right ? EXIT_CODE.ok : EXIT_CODE.failed;
    }
  } catch (error) {
    run.stopShowing();
    process.stderr.write(`\n${error.stack}\n`);
    process.exitCode = EXIT_CODE.failed;
  }
  if (!(await run.cleanUp())) process.exitCode = EXIT_CODE.failed;
}

function reportFailedScrapes(failures) {
  if (failures.length > 0) print(`\n${failures.length} scrapes failed, the first: ${failures[0].message}\n`);
}

function firstLines(exposition) {
  return exposition.split('\n').slice(0, EXPOSITION_LINES).join('\n').trimEnd();
}

main();
