'use strict';

// How many tasks at a time should a Node.js process work on?
//
//   node example/concurrency/concurrency.js [--short] [--steps 1,2,4,...] [--seconds N]
//
// An express service with three operations limits the number of tasks that run at a time. The limit is raised
// step by step under a constant load from more clients than the limit allows. All figures come from scrapes
// of the service's /metrics: durations of tasks by operation and by the level of concurrency at which they
// began, and runtime metrics. Up to the knee, tasks use the time in which others wait, and throughput grows.
// Beyond it they wait for each other, and the garbage collector copies what they hold again and again.
// example/heap-sizing shows a remedy.
//
// service.js is the service, tasks.js its operations, load.js the clients. limiter.js and task-metrics.js can
// be used elsewhere. The queries for a Prometheus server are printed at the end.

const os = require('node:os');
const { Scraper } = require('../demo/scraper');
const { print, runCommand } = require('./command');
const { verdict } = require('./knee');
const { LoadProcess } = require('./load-process');
const { readOptions, USAGE } = require('./options');
const { QUERIES } = require('./queries');
const { scrapeFor, scrapePage, ScrapeWindow } = require('./scrape-window');
const { ServiceProcess } = require('./service-process');
const { stepFigures, stepsTable } = require('./step-figures');
const { percent } = require('./text-table');
const { TimeLeft } = require('./time-left');

// Share of a step's length. Tasks from the previous limit are still running, and the new space is growing.
const SETTLING_SHARE = 0.25;
const WARM_UP_SHARE = 0.5;

runCommand({ usage: USAGE, readOptions, measure });

async function measure({ steps, seconds, clients }, processes, liveLine) {
  print(`Node ${process.version}, ${os.availableParallelism()} cores, ${clients} clients\n\n`);
  const service = processes.start(() => new ServiceProcess({ limit: middleOf(steps) }));
  const load = processes.start(() => new LoadProcess());
  await service.ready();
  const scraper = new Scraper(service.metricsUrl);
  try {
    load.start({ url: service.url, clients });
    const lengths = [WARM_UP_SHARE, ...steps.map(() => SETTLING_SHARE + 1)].map(share => seconds * share);
    const timeLeft = new TimeLeft(lengths);
    /** Begins the next phase; returns a function that shows its progress. */
    const begin = name => {
      timeLeft.begin();
      return window => liveLine.show(`${progressText(name, window)}, ${timeLeft}`);
    };
    // The first tasks are slow at any limit, because their code is not compiled yet.
    await scrapeFor(scraper, seconds * WARM_UP_SHARE, begin('warm-up'));
    liveLine.end();
    const figures = [];
    for (const limit of steps) {
      await service.setLimit(limit);
      const showStep = begin(`limit ${limit}`);
      await scrapeFor(scraper, seconds * SETTLING_SHARE, showStep);
      figures.push(stepFigures(limit, await scrapeFor(scraper, seconds, showStep)));
      liveLine.end();
    }
    const totals = await load.stop();
    const end = new ScrapeWindow([await scrapePage(scraper)]);
    print(`\n${stepsTable(figures)}\n\n${verdict(figures)}\n\n${QUERIES}\n`);
    return totalsAgree(totals, end.last('task_duration_seconds_count'));
  } finally {
    scraper.close();
  }
}

function middleOf(steps) {
  return steps[Math.floor(steps.length / 2)];
}

/** With the time left this fits a terminal of 80 columns. */
function progressText(name, window) {
  const [inFlight, queued] = [window.last('tasks_in_flight'), window.last('tasks_queued')];
  const throughput = window.rate('task_duration_seconds_count').toFixed(0);
  const share = percent(window.rate('nodejs_gc_pause_seconds_total'));
  return `${name.padEnd(10)} ${inFlight} in flight, ${queued} queued, ${throughput} tasks/s, GC ${share}`;
}

/** The metrics must have counted every request that was sent. */
function totalsAgree({ sent, answered, failed }, counted) {
  const agree = sent === answered && answered === counted;
  print(`\ncheck: ${sent} requests sent, ${answered} answered, ${failed} failed; `);
  print(`task_duration_seconds_count: ${counted}   ${agree ? 'equal' : 'DIFFERENT'}\n`);
  return agree;
}
