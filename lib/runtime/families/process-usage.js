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

/** Fields of process.resourceUsage(), by the value of their label. */
const PAGE_FAULT_FIELDS = { minor: 'minorPageFault', major: 'majorPageFault' };
const CONTEXT_SWITCH_FIELDS = {
  voluntary: 'voluntaryContextSwitches',
  involuntary: 'involuntaryContextSwitches',
};

/** Uptime, page faults and context switches of the process since it started. */
module.exports = defineProcessFamily(HELPS, group => {
  if (typeof process.resourceUsage !== 'function') return false;
  // The uptime of the youngest worker falls when a worker is replaced.
  const uptime = group.gauge(UPTIME, { aggregator: 'min' });
  const pageFaults = group.counter(PAGE_FAULTS, { labelNames: ['kind'] });
  const contextSwitches = group.counter(CONTEXT_SWITCHES, { labelNames: ['kind'] });
  const follow = [
    ...followFields(pageFaults, PAGE_FAULT_FIELDS, group.labels),
    ...followFields(contextSwitches, CONTEXT_SWITCH_FIELDS, group.labels),
  ];
  group.collectLater([uptime, pageFaults, contextSwitches], () => {
    uptime.set(group.labels, process.uptime());
    const usage = process.resourceUsage();
    for (const update of follow) update(usage);
  });
});
module.exports.metricNames = Object.keys(HELPS);

/**
 * @param {import('../../metric/counter').Counter} counter
 * @param {Record<string, string>} fields by kind
 * @param {Record<string, string | number>} labels
 * @returns {((usage: any) => void)[]}
 */
function followFields(counter, fields, labels) {
  return Object.entries(fields).map(([kind, field]) => {
    const follow = followTotal(counter, { kind, ...labels });
    return usage => follow(usage[field]);
  });
}
