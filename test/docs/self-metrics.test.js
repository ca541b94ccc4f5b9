'use strict';

// The alerts of docs/self-metrics.md. test/cluster/processes/self-metrics.test.js compares its table with a
// cluster.

const fs = require('node:fs');
const path = require('node:path');
const { it } = require('node:test');

const { assertAlertsFire } = require('../fixtures/alert-tests.js');
const { makePlace } = require('../fixtures/cluster-harness.js');
const { missingPrograms } = require('../fixtures/prometheus-server.js');

const DOCUMENT = fs.readFileSync(path.join(__dirname, '../../docs/self-metrics.md'), 'utf8');
const [, RULES] = /^```yaml\n([^]*?)^```$/m.exec(DOCUMENT);
const PREFIX = 'prom_client_cluster_';

const required = process.env.REQUIRE_ALL === '1';
const withPromtool = { skip: !required && missingPrograms(['promtool']) };

it('alerts of docs/self-metrics.md fire on bad values, and not on good ones', withPromtool, t =>
  assertAlertsFire(
    makePlace(t),
    RULES,
    [...Object.entries(BAD), ...Object.entries(FIRST)].map(([alert, series]) => {
      const prefixed = series.map(([name, values]) => [PREFIX + name, values]);
      return { alert, series: prefixed, quiet: '59m', firing: alert in FIRST ? '65m' : '110m' };
    }),
  ),
);

/** A series of a sample each minute: quiet for an hour, and then as something is wrong. */
const BAD = {
  ClusterWorkerUnresponsive: [['workers{state="unresponsive"}', '0x60 1x60']],
  ClusterNoFreshWorker: [['workers{state="fresh"}', '4x60 0x60']],
  ClusterWorkerStale: [['workers{state="stale"}', '0x60 1x60']],
  ClusterWorkersDieOften: [['workers{state="retired"}', '2x60 3+1x60']],
  ClusterNumbersOld: [['oldest_numbers_age_seconds', '0.01x60 60+60x60']],
  ClusterSnapshotsLarge: [['snapshot_bytes', '1000000x60 200000000x60']],
  ClusterCollectSlow: durations('collect'),
  ClusterMergeSlow: durations('merge'),
  ClusterSeriesExpireFast: [['expired_series_total{metric="m"}', '0+60x60 3600+60000x60']],
  ClusterSeriesMany: [['active_series{metric="m"}', '1000x60 200000x60']],
  ClusterMetricConflict: [['conflicts_total', '0x60 1+1x60']],
  ClusterAnswersRefused: [['refused_answers_total{reason="magic"}', '1x60 2+1x60']],
  ClusterThreadLost: [['lost_threads_total', '0x60 1x60']],
  ClusterGroupLeaderChangesOften: [['group_leader_changes_total', '3x60 4+1x60']],
  ClusterAggregatesInPlace: [['in_place{reason="lost"}', '0x60 1x60']],
  ClusterSnapshotsOverIpc: [['snapshots_over_ipc_total{reason="ENOSPC"}', '1x60 2+1x60']],
};

/** The same for alerts that fire at the first event: series that are at 0, or do not exist. */
const FIRST = {
  ClusterCollectHookFails: [['failures_total{stage="collect",metric="m"}', '_x60 1x60']],
  ClusterSeriesOverflow: [['failures_total{stage="max-series",metric="m"}', '_x60 1x60']],
  ClusterMetricLeftOut: [['failures_total{stage="json",metric="m"}', '_x60 1x60']],
  ClusterSnapshotNotWritten: [['failures_total{stage="checkpoint",metric=""}', '0x60 1x60']],
};

/** A scrape a minute that takes less than 0.1 seconds, and then more than 2.5. */
function durations(name) {
  const bucket = le => `${name}_duration_seconds_bucket{le="${le}"}`;
  return [
    [bucket('0.1'), '0+1x60 60x60'],
    [bucket('2.5'), '0+1x60 60x60'],
    [bucket('5'), '0+1x60 61+1x60'],
    [bucket('+Inf'), '0+1x60 61+1x60'],
  ];
}
