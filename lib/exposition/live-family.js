'use strict';

// Presents a metric of this process as input of the text format: its table, and each row's labels as text,
// with the registry's default labels that the row does not have.

const { CapturedTable } = require('../series/captured-table');
const { kindOf } = require('../series/layouts');
const { labelPair, labelsText, joinLabels } = require('./label-text');

/** @typedef {import('../series/series-table').SeriesTable} SeriesTable */
/** @typedef {import('./text-format').Layout} Layout */
/** @typedef {import('./text-format').Family} Family */
/** @typedef {import('./label-text').LabelPair} LabelPair */

/**
 * The state of a metric that the text format and captures read.
 *
 * @typedef {object} MetricView
 * @property {string} name
 * @property {string} help
 * @property {string} type
 * @property {string} aggregator
 * @property {Layout} layout
 * @property {SeriesTable} table
 * @property {() => void} [beforeRead] to be called after the `collect` hook, before rows are read
 * @property {() => (row: number) => ArrayLike<number>} [captureQuantiles] the quantiles at the time of the
 *   call, to be computed later
 * @property {import('../metric/exemplar').Exemplars} [exemplars]
 * @property {(row: number) => import('../metric/time-window-quantiles').TimeWindowQuantiles} [digestOf] of a
 *   summary
 * @property {import('../series/native-buckets').NativeBuckets} [buckets] of a native histogram
 * @property {boolean} [windowed] whether a summary's quantiles are those of a sliding window
 * @property {number} [maxIdleSeconds] after which a row expires that nobody uses; default that of the table
 * @property {import('../source/extras').Ended} [ended] if these rows have ended
 * @property {import('../source/columns-encoder').TableNumbers} [numbers] what a snapshot has in place of the
 *   table's, and without anything else of the rows
 */

/**
 * @param {MetricView} view
 * @param {Record<string, unknown>} defaultLabels
 * @returns {Family} with the values at the time they are read
 */
function liveFamily(view, defaultLabels) {
  const { table, captureQuantiles, exemplars, buckets } = view;
  const quantileValues = captureQuantiles?.();
  const exemplarAt = exemplars && exemplars.at.bind(exemplars);
  const bucketsAt = buckets && buckets.read.bind(buckets);
  return familyOf(view, table, { quantileValues, exemplarAt, bucketsAt }, defaultLabels);
}

/**
 * @param {MetricView} view
 * @param {Record<string, unknown>} defaultLabels
 * @returns {Family} with the values at the time of this call
 */
function capturedFamily(view, defaultLabels) {
  const quantileValues = view.captureQuantiles?.();
  const exemplarAt = view.exemplars?.captured();
  const buckets = view.buckets?.captured();
  const bucketsAt = buckets && buckets.read.bind(buckets);
  const end = buckets && (() => (buckets.isOver = true));
  const table = new CapturedTable(view.table);
  return familyOf(view, table, { quantileValues, exemplarAt, bucketsAt, end }, defaultLabels);
}

/**
 * @param {MetricView} view
 * @param {SeriesTable} table
 * @param {Pick<Family, 'quantileValues' | 'exemplarAt' | 'bucketsAt' | 'end'>} readers
 * @param {Record<string, unknown>} defaultLabels
 * @returns {Family}
 */
function familyOf({ name, help, type, layout, exemplars }, table, readers, defaultLabels) {
  // A bucket or quantile sample has its own `le` or `quantile`. A default label of that name is on the other
  // samples only.
  const { marker } = kindOf(layout);
  const own = labelReader(table, layout, defaultLabels, undefined);
  const hasMarkerDefault = marker !== undefined && Object.hasOwn(defaultLabels, marker);
  const markedOnes = hasMarkerDefault ? labelReader(table, layout, defaultLabels, marker) : own;
  return {
    name,
    help,
    type,
    layout,
    rows: () => table.liveRows(),
    pageOf: row => table.pageOf(row),
    offsetOf: row => table.offsetOf(row),
    labels: (row, marked) => (marked ? markedOnes : own).pairs(row),
    labelText: (row, marked) => (marked ? markedOnes : own).text(row),
    quantileValues: readers.quantileValues,
    exemplarAt: readers.exemplarAt,
    bucketsAt: readers.bucketsAt,
    end: readers.end,
    nativeExemplarsAt: exemplars && nativeExemplarsOf(readers.exemplarAt, table.width, exemplars.width),
    starts: table.starts === undefined ? undefined : table,
  };
}

/**
 * @param {Family['exemplarAt']} exemplarAt
 * @param {number} width of the table: the exemplars of sparse buckets are in the columns behind it
 * @param {number} end of these columns
 * @returns {Family['nativeExemplarsAt']}
 */
function nativeExemplarsOf(exemplarAt, width, end) {
  if (exemplarAt === undefined || end <= width) return undefined;
  return row => {
    const columns = Array.from({ length: end - width }, (_, i) => exemplarAt(row, width + i));
    return columns.filter(exemplar => exemplar != null);
  };
}

/** For most metrics without labels: creating a reader for them takes 8 % of the time of a small page. */
const NO_LABELS = { pairs: () => [], text: () => '' };

/**
 * @param {SeriesTable} table
 * @param {Layout} layout
 * @param {Record<string, unknown>} defaultLabels
 * @param {string | undefined} except a default label to leave out
 * @returns {{pairs: (row: number) => LabelPair[], text: (row: number) => string}} the labels of a row
 */
function labelReader(table, layout, defaultLabels, except) {
  if (table.index === undefined && Object.keys(defaultLabels).length === 0) return NO_LABELS;
  const { labelNames } = table;
  const { startsWithDefaults } = kindOf(layout);
  /** @type {{positions: number[], pairs: LabelPair[], text: string}[]} with the default labels it lacks */
  const forms = [];

  /** @param {number} row */
  function formOf(row) {
    const form = table.formOf(row);
    return (forms[form] ??= readForm(form));
  }

  /** @param {number} form */
  function readForm(form) {
    const positions = table.index === undefined ? [] : table.forms.list[form].positions;
    const own = positions.map(i => labelNames[i]);
    /** @type {LabelPair[]} */
    const pairs = Object.keys(defaultLabels)
      .filter(name => name !== except && !own.includes(name))
      .map(name => [name, String(defaultLabels[name])]);
    return { positions, pairs, text: labelsText(pairs) };
  }

  return {
    pairs: row => {
      const { positions, pairs } = formOf(row);
      const own = positions.map(i => /** @type {LabelPair} */ ([labelNames[i], table.labelText(row, i)]));
      return startsWithDefaults ? [...pairs, ...own] : [...own, ...pairs];
    },
    text: row => {
      const { positions, text } = formOf(row);
      if (positions.length === 0) return text;
      let own = '';
      for (let i = 0; i < positions.length; i++) {
        const pair = labelPair(labelNames[positions[i]], table.labelText(row, positions[i]));
        own = i === 0 ? pair : own + ',' + pair;
      }
      return startsWithDefaults ? joinLabels(text, own) : joinLabels(own, text);
    },
  };
}

module.exports = { liveFamily, capturedFamily };
