'use strict';

/** @type {string} the figures of the table, for a Prometheus server that scrapes the service */
const QUERIES = `The same in PromQL:
  tasks/s      sum(rate(task_duration_seconds_count[1m]))
  P99          histogram_quantile(0.99, sum by (le, operation, concurrency) (rate(task_duration_seconds_bucket[1m])))
  queued       sum(rate(task_queue_wait_seconds_sum[1m])) / sum(rate(task_queue_wait_seconds_count[1m]))
  in flight    tasks_in_flight / tasks_limit
  GC share     sum by (instance) (rate(nodejs_gc_pause_seconds_total[1m]))
  scavenges/s  rate(nodejs_gc_runs_total{kind="minor"}[1m])
  loop busy    rate(nodejs_eventloop_active_seconds_total[1m])
                 / (rate(nodejs_eventloop_active_seconds_total[1m]) + rate(nodejs_eventloop_idle_seconds_total[1m]))
  new space    max_over_time(nodejs_heap_space_committed_bytes{space="new"}[1m])`;

module.exports = { QUERIES };
