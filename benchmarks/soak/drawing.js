'use strict';

// Draws a soak over time: memory, descriptors and files, counts, and what was done to the cluster meanwhile.

const { COLOURS } = require('../pictures/chart.js');
const { count } = require('../shared/table.js');
const { linesOf, warmUpOf } = require('./report.js');

const POINTS = 150; // of a line, at most: a drawing of an hour needs no point for each second
const MIB = 2 ** 20;
const WIDTH = 620;
const EVENTS = ['worker killed', 'worker redeployed', 'thread killed', 'disk full'];

const PRIMARY = { colour: COLOURS['prometheus-io'], dash: [1, 0], width: 2 };
const WORKER = { ...PRIMARY, colour: COLOURS['prom-client'] };
const DASHED = { dash: [7, 3] };

/** What the panels show, and how each line looks. */
const PANELS = {
  'Memory, MiB': {
    'primary, RSS': PRIMARY,
    'primary, heap': { ...PRIMARY, ...DASHED },
    'worker 1, RSS': WORKER,
    'worker 1, heap': { ...WORKER, ...DASHED },
  },
  'Open descriptors, and files of snapshots': {
    'primary, descriptors': PRIMARY,
    'worker 1, descriptors': WORKER,
    files: { ...PRIMARY, dash: [2, 3], colour: COLOURS.ours },
  },
  'Requests of the label sets in use, recorded and shown': {
    recorded: { ...PRIMARY, colour: COLOURS.bare, width: 6 },
    shown: { ...PRIMARY, colour: COLOURS.ours },
  },
};

/**
 * @param {any} record
 * @param {{machine: string, date: string, minutes: number, workers: number}} about
 * @returns {object} the numbers that are drawn: benchmarks/pictures/soak.json. All times are in seconds.
 */
function drawnOf(record, about) {
  const lines = linesOf(record).map(({ name, kind, points }) => {
    if (kind === 'files') return [kind, points];
    if (kind === 'descriptors') return [`${name}, ${kind}`, points];
    const inMib = points.map(({ at, value }) => ({ at, value: value / MIB }));
    return [`${name}, ${kind === 'rss' ? 'RSS' : kind}`, inMib];
  });
  for (const name of ['recorded', 'shown']) {
    lines.push([name, record.scrapes.map(scrape => ({ at: scrape.at, value: scrape[name] }))]);
  }
  const timesOf = event => record.events.filter(({ what }) => what === event).map(({ at }) => Math.round(at));
  return {
    ...about,
    warmUp: warmUpOf(record.seconds),
    differences: record.differences.length,
    lines: Object.fromEntries(lines.map(([name, points]) => [name, thinned(points)])),
    events: Object.fromEntries(EVENTS.map(event => [event, timesOf(event)])),
  };
}

function thinned(points) {
  const step = Math.ceil(points.length / POINTS);
  const left = points.filter((_, index) => index % step === 0);
  return {
    at: left.map(({ at }) => Math.round(at)),
    values: left.map(({ value }) => Number(value.toPrecision(4))),
  };
}

/**
 * @param {any} drawn as drawnOf() returns it
 * @returns {object} for Vega-Lite
 */
function soakSpec({ date, machine, minutes, workers, differences, warmUp, lines, events }) {
  const found = `${count(differences)} differences between recorded and shown. Shaded: warm-up`;
  const x = { field: 'minute', type: 'quantitative', scale: { domain: [0, minutes] }, axis: { title: null } };
  const shade = {
    data: { values: [{ minute: 0, end: warmUp / 60 }] },
    mark: { type: 'rect', color: COLOURS.shade },
    encoding: { x2: { field: 'end' } },
  };
  const panels = Object.entries(PANELS).map(([title, looks]) => ({
    title: { text: title, fontSize: 12 },
    width: WIDTH,
    height: 170,
    encoding: { x },
    layer: [shade, linesSpec(looks, lines)],
  }));
  return {
    title: {
      text: `${minutes} minutes under load, ${workers} workers`,
      subtitle: [`${date}, ${machine}`, found, ''],
    },
    vconcat: [...panels, eventsSpec(events, x)],
    resolve: { scale: { color: 'independent', strokeDash: 'independent', strokeWidth: 'independent' } },
  };
}

function linesSpec(looks, lines) {
  const values = Object.keys(looks).flatMap(line =>
    lines[line].at.map((at, index) => ({ line, minute: at / 60, value: lines[line].values[index] })),
  );
  const scaleOf = look => ({
    field: 'line',
    type: 'ordinal',
    scale: { domain: Object.keys(looks), range: Object.values(looks).map(each => each[look]) },
    legend: { title: null },
  });
  return {
    data: { values },
    mark: 'line',
    encoding: {
      y: { field: 'value', type: 'quantitative', axis: { title: null, format: '~s', tickCount: 5 } },
      color: scaleOf('colour'),
      strokeDash: scaleOf('dash'),
      strokeWidth: scaleOf('width'),
    },
  };
}

/** A row for each kind of event, so that many of them can be told apart. */
function eventsSpec(events, x) {
  const values = EVENTS.flatMap(what => events[what].map(at => ({ what, minute: at / 60 })));
  return {
    title: { text: 'What was done to the cluster', fontSize: 12 },
    width: WIDTH,
    height: { step: 24 },
    data: { values },
    mark: { type: 'tick', color: COLOURS.ink, thickness: 2, size: 16 },
    encoding: {
      x: { ...x, axis: { title: 'minutes', grid: false } },
      y: { field: 'what', type: 'nominal', scale: { domain: EVENTS }, axis: { title: null, labelLimit: 0 } },
    },
  };
}

module.exports = { drawnOf, soakSpec };
