'use strict';

/** @type {string} the figures of the table, for a Prometheus server that scrapes the service */
const QUERIES = `The same in PromQL:
  scavenges/s  rate(nodejs_gc_runs_total{kind="minor"}[1m])
  GC share     sum by (instance, kind) (rate(nodejs_gc_pause_seconds_total[1m]))
  P99          histogram_quantile(0.99, sum by (le, operation) (rate(task_duration_seconds_bucket[1m])))
  majors/s     rate(nodejs_gc_runs_total{kind="major"}[1m])
  promoted     clamp_min(delta(nodejs_heap_space_used_bytes{space="old"}[15s]), 0) / 15
  old, new     max_over_time(nodejs_heap_space_used_bytes{space="old"}[1m])
               max_over_time(nodejs_heap_space_committed_bytes{space="new"}[1m])
               max_over_time(nodejs_heap_space_physical_bytes{space="new"}[1m])
  RSS          max_over_time(process_resident_memory_bytes[1m])`;

module.exports = { QUERIES };
