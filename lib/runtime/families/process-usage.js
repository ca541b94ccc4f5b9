'use strict';

const { MetricGroup } = require('../sampling/metric-group');
const { followTotal } = require('../sampling/followed-total');

const UPTIME = 'process_uptime_seconds';
const PAGE_FAULTS = 'process_page_faults_total';
const CONTEXT_SWITCHES = 'process_context_switches_total';

/** Fields of process.resourceUsage(), by the label that they get. */
const PAGE_FAULT_FIELDS = { minor: 'minorPageFault', major: 'majorPageFault' };
const CONTEXT_SWITCH_FIELDS = {
  voluntary: 'voluntaryContextSwitches',
  involuntary: 'involuntaryContextSwitches',
};

/**
 * How long the process runs, and how often the kernel had to step in, since it started.
 *
 * @param {import('../../registry/registry').Registry} [registry] default: the global one
 * @param {import('../sampling/metric-group').FamilyConfig} [config]
 */
function processUsage(registry, config = {}) {
  if (typeof process.resourceUsage !== 'function') return undefined;
  return MetricGroup.build(registry, config, group => {
    const uptime = group.gauge({
      name: UPTIME,
      help: 'Time in seconds since the process started.',
      // That of the youngest worker: it falls when one was replaced.
      aggregator: 'min',
    });
    const labelNames = ['kind'];
    const pageFaults = group.counter({
      name: PAGE_FAULTS,
      help: 'Pages that the kernel had to map (minor) or to read from a disk (major).',
      labelNames,
    });
    const contextSwitches = group.counter({
      name: CONTEXT_SWITCHES,
      help: 'How often a thread gave its CPU away because it had to wait (voluntary), or had to leave it to others.',
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
}

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
