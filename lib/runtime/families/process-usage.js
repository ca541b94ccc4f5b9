'use strict';

const { defineProcessFamily } = require('../sampling/metric-group');
const { followTotal } = require('../sampling/followed-total');

const UPTIME = 'process_uptime_seconds';
const PAGE_FAULTS = 'process_page_faults_total';
const CONTEXT_SWITCHES = 'process_context_switches_total';

const HELPS = {
  [UPTIME]: 'Time in seconds since the process started.',
  [PAGE_FAULTS]: 'Page faults by kind: major ones read from a disk, minor ones do not.',
  [CONTEXT_SWITCHES]:
    'Context switches by kind: voluntary when a thread waits, involuntary when it is preempted.',
};

/**
 * Fields of process.resourceUsage(), by metric and kind.
 *
 * @type {Record<string, Record<string, keyof NodeJS.ResourceUsage>>}
 */
const FIELDS = {
  [PAGE_FAULTS]: { minor: 'minorPageFault', major: 'majorPageFault' },
  [CONTEXT_SWITCHES]: { voluntary: 'voluntaryContextSwitches', involuntary: 'involuntaryContextSwitches' },
};

/** Uptime, page faults and context switches of the process since it started. */
module.exports = defineProcessFamily(HELPS, group => {
  if (typeof process.resourceUsage !== 'function') return false;
  // The uptime of the youngest worker falls when a worker is replaced.
  const uptime = group.gauge(UPTIME, { aggregator: 'min' });
  /** @type {((usage: NodeJS.ResourceUsage) => void)[]} */
  const updates = [];
  const counters = Object.entries(FIELDS).map(([name, fields]) => {
    const counter = group.counter(name, { labelNames: ['kind'] });
    for (const [kind, field] of Object.entries(fields)) {
      const follow = followTotal(counter, { kind, ...group.labels });
      updates.push(usage => follow(usage[field]));
    }
    return counter;
  });
  group.collectLater([uptime, ...counters], () => {
    uptime.set(group.labels, process.uptime());
    const usage = process.resourceUsage();
    for (const update of updates) update(usage);
  });
});
