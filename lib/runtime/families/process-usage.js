'use strict';

const { defineProcessFamily } = require('../sampling/metric-group');
const { followTotal } = require('../sampling/followed-total');

const UPTIME = 'process_uptime_seconds';
const PAGE_FAULTS = 'process_page_faults_total';
const CONTEXT_SWITCHES = 'process_context_switches_total';

/** Fields of process.resourceUsage(), by the value of their label. */
const PAGE_FAULT_FIELDS = { minor: 'minorPageFault', major: 'majorPageFault' };
const CONTEXT_SWITCH_FIELDS = {
  voluntary: 'voluntaryContextSwitches',
  involuntary: 'involuntaryContextSwitches',
};

/** Uptime, page faults and context switches of the process since it started. */
const processUsage = defineProcessFamily(group => {
  if (typeof process.resourceUsage !== 'function') return false;
  const uptime = group.gauge({
    name: UPTIME,
    help: 'Time in seconds since the process started.',
    // The uptime of the youngest worker falls when a worker is replaced.
    aggregator: 'min',
  });
  const labelNames = ['kind'];
  const pageFaults = group.counter({
    name: PAGE_FAULTS,
    help: 'Page faults by kind: major ones read from a disk, minor ones do not.',
    labelNames,
  });
  const contextSwitches = group.counter({
    name: CONTEXT_SWITCHES,
    help: 'Context switches by kind: voluntary when a thread waits, involuntary when it is preempted.',
    labelNames,
  });
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

module.exports = processUsage;
module.exports.metricNames = [UPTIME, PAGE_FAULTS, CONTEXT_SWITCHES];
