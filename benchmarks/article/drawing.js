'use strict';

// Draws the medians of the article's benchmark, which are the numbers of its tables: P99 by round for the top
// of README.md (whose table is headline.js), and all figures of all runs.

const { COLOURS, logarithmic } = require('../pictures/chart.js');
const { fullTitleOf } = require('../shared/clients.js');
const { count } = require('../shared/table.js');
const { median } = require('../shared/statistics.js');
const { HEADLINE_ROUNDS, shown } = require('./headline.js');
const { roundTitle } = require('./plan.js');
const { BARE, CLIENT_KEYS, RUNS } = require('./runs.js');
const { FIGURES } = require('./segment.js');

/** Clients can be told apart without colours. */
const SHAPES = { bare: 'diamond', 'prom-client': 'square', 'prometheus-io': 'triangle-up', ours: 'circle' };
const DASHES = { bare: [2, 3], 'prom-client': [9, 3], 'prometheus-io': [4, 3], ours: [1, 0] };
const LINE = '\n';
const LINES = `split(datum.label, '\\n')`;
const LEAST = 0.1; // ms; smaller values are drawn here

/**
 * @typedef {object} Medians what is drawn: benchmarks/pictures/article.json
 * @property {string} date
 * @property {string} machine
 * @property {{key: string, samples: number, every: number, reused: boolean,
 *   gzip: boolean, repetitions: number, figures: Record<string, Record<string, number>>}[]} rounds figures in
 *   ms, by run
 */

/**
 * @param {import('./results.js').Results} results
 * @returns {Medians}
 */
function mediansOf({ date, machine, rounds }) {
  return { date: date.slice(0, 10), machine, rounds: rounds.map(mediansOfRound) };
}

function mediansOfRound({ round, segments }) {
  const { key, samples, every, reused, gzip, repetitions } = round;
  const figures = RUNS.map(run => [run.key, segments.filter(segment => segment.run === run.key)])
    .filter(([, own]) => own.length > 0)
    .map(([run, own]) => [
      run,
      Object.fromEntries(FIGURES.map(figure => [figure.key, medianOf(own, figure)])),
    ]);
  return { key, samples, every, reused, gzip, repetitions, figures: Object.fromEntries(figures) };
}

function medianOf(segments, { key }) {
  return median(segments.map(({ figures }) => figures[key]));
}

/**
 * @param {Medians} medians
 * @returns {object | undefined} P99 of scraped clusters by round, for Vega-Lite; undefined without all rounds
 */
function headlineSpec({ date, machine, rounds }) {
  const drawn = HEADLINE_ROUNDS.map(key => rounds.find(round => round.key === key));
  if (drawn.includes(undefined)) return undefined;
  const runs = RUNS.filter(({ key, scraped }) => scraped && drawn.every(({ figures }) => key in figures));
  const values = drawn.flatMap(({ samples, every, figures }) => {
    const descending = runs.map(({ key }) => figures[key].p99).sort((one, other) => other - one);
    return runs.map(({ key, client }) => ({
      round: `${count(samples)} samples${LINE}${every === 1 ? 'every second' : `every ${every} s`}`,
      client: headlineTitleOf(client),
      ms: figures[key].p99,
      label: shown(figures[key].p99),
      // Two lines that are close have their numbers above and below.
      place: descending.indexOf(figures[key].p99) % 2 === 0 ? -15 : 17,
    }));
  });
  const numbers = { type: 'text', dy: { expr: 'datum.place' }, fontWeight: 'bold', fontSize: 13 };
  const clients = runs.map(({ client }) => client);
  return {
    title: {
      text: 'P99 latency of requests while the cluster is scraped, in milliseconds',
      subtitle: [`Less is better. The axis is logarithmic. ${date}, ${machine}.`, ''],
    },
    width: 620,
    height: 330,
    data: { values },
    encoding: {
      x: {
        field: 'round',
        type: 'ordinal',
        sort: null,
        axis: {
          title: 'samples of each of four workers, and how often they are scraped',
          labelAngle: 0,
          labelExpr: LINES,
        },
      },
      y: logarithmic('ms', values, 'ms'),
      color: clientScale(clients, COLOURS, headlineTitleOf),
    },
    layer: [
      { mark: { type: 'line', strokeWidth: 4 } },
      {
        mark: { type: 'point', filled: true, size: 110, opacity: 1 },
        encoding: { shape: clientScale(clients, SHAPES, headlineTitleOf) },
      },
      {
        mark: { ...numbers, stroke: COLOURS.paper, strokeWidth: 4 },
        encoding: { text: { field: 'label' }, color: { value: COLOURS.paper } },
      },
      { mark: numbers, encoding: { text: { field: 'label' } } },
    ],
  };
}

/**
 * @param {Medians} medians
 * @returns {object} all figures of all runs, a panel for each round
 */
function roundsSpec({ date, machine, rounds }) {
  const values = rounds.flatMap(round =>
    RUNS.filter(({ key }) => key in round.figures).flatMap(({ key, client, scraped }) =>
      FIGURES.map(figure => ({
        round: titleOfPanel(round),
        run: key,
        client: titleOf(client),
        scraped: scraped ? 'scraped' : 'unscraped',
        figure: figure.title,
        ms: Math.max(round.figures[key][figure.key], LEAST),
      })),
    ),
  );
  if (values.length === 0) throw new Error('no run to draw');
  const drawn = CLIENT_KEYS.filter(client => values.some(value => value.client === titleOf(client)));
  return {
    title: {
      text: 'Latency of requests to a cluster that is scraped, and to one that is not, in milliseconds',
      subtitle: [`Medians of the repetitions; the axes are logarithmic. ${date}, ${machine}.`, ''],
    },
    data: { values },
    facet: {
      field: 'round',
      sort: rounds.map(titleOfPanel),
      title: null,
      header: { labelFontWeight: 'bold', labelExpr: LINES },
    },
    columns: 2,
    spec: {
      width: 300,
      height: 220,
      mark: { type: 'line', point: false },
      encoding: {
        x: { field: 'figure', type: 'ordinal', sort: null, axis: { title: null, labelAngle: 0, grid: true } },
        y: logarithmic('ms', values, 'ms'),
        detail: { field: 'run' },
        color: clientScale(drawn, COLOURS),
        strokeDash: clientScale(drawn, DASHES),
        strokeWidth: {
          field: 'scraped',
          type: 'ordinal',
          scale: { domain: ['scraped', 'unscraped'], range: [3.5, 1] },
          legend: { title: null, symbolStrokeColor: COLOURS.ink },
        },
      },
    },
  };
}

function titleOfPanel(round) {
  return roundTitle(round).replaceAll(', ', LINE);
}

function titleOf(client) {
  return client === BARE ? 'no metrics; scraped: a static page' : fullTitleOf(client);
}

function headlineTitleOf(client) {
  return client === BARE ? 'static page of the same size' : fullTitleOf(client);
}

function clientScale(clients, looks, nameOf = titleOf) {
  return {
    field: 'client',
    scale: { domain: clients.map(nameOf), range: clients.map(client => looks[client]) },
    legend: { title: null },
  };
}

module.exports = { headlineSpec, mediansOf, roundsSpec };
