'use strict';

// How large should the new space of a Node.js process be?
//
//   node example/heap-sizing/heap-sizing.js [--short] [--sizes default,16,32,...]
//     [--seconds N] [--rounds N] [--rate N]
//
// New objects are allocated in the new space. When half of it (a semi-space) is full, a scavenge copies the
// objects that are still in use and drops the rest. Garbage costs nothing; objects that tasks hold while they
// wait cost much. A larger semi-space is full less often, and more of its objects are garbage by then. The
// price is memory.
//
// The service of example/concurrency runs with each setting in a new process, at the same request rate, in
// rounds that go through the settings forwards and backwards. The figures of the table come from scrapes of
// its /metrics.

const os = require('node:os');
const { print, runCommand } = require('../concurrency/command');
const { LoadProcess } = require('../concurrency/load-process');
const { percent } = require('../concurrency/text-table');
const { TimeLeft } = require('../concurrency/time-left');
const { choiceText } = require('./choice');
const { readOptions, USAGE } = require('./options');
const { QUERIES } = require('./queries');
const { SettingFigures } = require('./setting-figures');
const { lengthOf, measureSetting, rateToTry } = require('./setting-run');
const { settingsTable } = require('./settings-table');

runCommand({ usage: USAGE, readOptions, measure });

async function measure({ sizes, seconds, rounds, rate: givenRate }, processes, liveLine) {
  print(`Node ${process.version}, ${os.availableParallelism()} cores\n\n`);
  const load = processes.start(() => new LoadProcess());
  const phases = rounds * sizes.length + (givenRate === undefined ? 1 : 0);
  const timeLeft = new TimeLeft(Array(phases).fill(lengthOf(seconds)));
  /** Begins the next phase; returns a function that shows its progress. */
  const begin = name => {
    timeLeft.begin();
    return window => liveLine.show(`${progressText(name, window)}, ${timeLeft}`);
  };
  const rate =
    givenRate ?? (await rateToTry({ processes, load, seconds, onScrape: begin('looking for a rate') }));
  liveLine.end();
  print(`${rate} requests a second\n\n`);

  const runs = [];
  for (let round = 1; round <= rounds; round++) {
    const order = round % 2 === 1 ? sizes : sizes.toReversed();
    for (const size of order) {
      const onScrape = begin(`round ${round}, semi-space ${size}`);
      runs.push({ size, ...(await measureSetting({ size, rate, seconds, processes, load, onScrape })) });
      liveLine.end();
    }
  }

  const windowsOf = size => runs.filter(run => run.size === size).map(run => run.window);
  const settings = sizes.map(size => new SettingFigures(size, windowsOf(size)));
  print(`\n${settingsTable(settings)}\n\n${choiceText(settings)}\n\n${QUERIES}\n`);
  return totalsAgree(runs);
}

function progressText(name, window) {
  const throughput = window.rate('task_duration_seconds_count').toFixed(0);
  const share = percent(window.rate('nodejs_gc_pause_seconds_total'));
  const scavenges = window.rate('nodejs_gc_runs_total', { kind: 'minor' }).toFixed(1);
  return `${name.padEnd(27)} ${throughput} tasks/s, ${scavenges} scavenges/s, GC ${share}`;
}

/** The metrics must have counted every request that was sent. */
function totalsAgree(runs) {
  const [sent, answered, failed, counted] = ['sent', 'answered', 'failed', 'counted'].map(key =>
    runs.reduce((sum, run) => sum + run[key], 0),
  );
  const agree = runs.every(run => run.sent === run.answered && run.answered === run.counted);
  print(`\ncheck: ${sent} requests sent, ${answered} answered, ${failed} failed; `);
  print(`task_duration_seconds_count: ${counted}   ${agree ? 'equal' : 'DIFFERENT'}\n`);
  return agree;
}
