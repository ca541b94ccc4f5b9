'use strict';

// The only place where text is made. Input are metric families: a live metric (exposition/live-family.js), somebody's
// own metric object (exposition/sample-family.js) or one family of a whole cluster (cluster/cluster-store.js).
// Formats: https://prometheus.io/docs/instrumenting/exposition_formats/ (0.0.4) and
// https://github.com/prometheus/OpenMetrics (1.0.0).

const { formatNumber } = require('./number-format');
const { labelPair, escapeHelp, joinLabels } = require('./label-text');

// Text leaves in pieces of about this many characters: small enough for a slice of a shared loop, large enough that
// pieces do not count.
const PIECE_CHARACTERS = 65536;

/**
 * How a row's numbers become samples.
 *
 * - value: one number
 * - histogram: one count per bound (not cumulative), the count above the last bound, the sum
 * - summary: the sum, the count; the quantiles come from `quantileValues(row)`
 * - samples: one number, under the name `sampleName(row)`
 *
 * @typedef {{kind: 'value'} | {kind: 'samples'} | {kind: 'histogram', bounds: readonly number[]}
 *   | {kind: 'summary', quantiles: readonly number[]}} Layout
 */

/** @typedef {{labelSet: Record<string, unknown>, value: number, timestamp: number}} Exemplar */

/**
 * A metric family as the text format wants it. Rows are numbers that only the family itself understands.
 *
 * @typedef {object} Family
 * @property {string} name
 * @property {string} help
 * @property {string} type
 * @property {Layout} layout
 * @property {() => Iterable<number>} rows in the order they are printed
 * @property {(row: number) => ArrayLike<number>} pageOf where a row's numbers are
 * @property {(row: number) => number} offsetOf and from which index
 * @property {(row: number, marked: boolean) => string} labelText a row's labels; `marked` where `le` or `quantile`
 *   stands before them
 * @property {(row: number) => ArrayLike<number>} [quantileValues]
 * @property {(row: number) => string} [sampleName]
 * @property {(row: number, column: number) => Exemplar | undefined | null} [exemplarAt]
 */

/**
 * Writes families as Prometheus text or OpenMetrics, piece by piece.
 *
 * @param {Iterable<Family>} families
 * @param {boolean} openMetrics
 * @returns {Generator<string, void>}
 */
function* renderFamilies(families, openMetrics) {
  let text = '';
  let first = true;
  for (const family of families) {
    if (!first) text += separator(openMetrics);
    first = false;
    for (const piece of renderFamily(family, openMetrics)) {
      text += piece;
      if (text.length < PIECE_CHARACTERS) {
        // A rest all the same: little text may have taken its time (quantiles are computed on the way).
        yield '';
        continue;
      }
      yield text;
      text = '';
    }
  }
  yield text + ending(openMetrics);
}

/**
 * A page of families that are written already, each by renderFamily().
 *
 * @param {string[]} texts
 * @param {boolean} openMetrics
 * @returns {string}
 */
function joinFamilies(texts, openMetrics) {
  return texts.join(separator(openMetrics)) + ending(openMetrics);
}

/** @param {boolean} openMetrics */
function separator(openMetrics) {
  // Prometheus text sets families apart by an empty line; OpenMetrics allows none.
  return openMetrics ? '\n' : '\n\n';
}

/** @param {boolean} openMetrics */
function ending(openMetrics) {
  return openMetrics ? '\n# EOF\n' : '\n';
}

/**
 * Writes one family, without a line feed at its end.
 *
 * @param {Family} family
 * @param {boolean} openMetrics
 * @returns {Generator<string, void>}
 */
function* renderFamily(family, openMetrics) {
  const name = openMetrics && family.type === 'counter' ? family.name.replace(/_total$/, '') : family.name;
  yield `# HELP ${name} ${escapeHelp(String(family.help))}\n# TYPE ${name} ${family.type}`;
  const exemplarText = openMetrics && family.exemplarAt !== undefined ? exemplarWriter(family) : undefined;
  switch (family.layout.kind) {
    case 'histogram':
      yield* renderHistogram(family, family.layout.bounds, exemplarText);
      break;
    case 'summary':
      yield* renderSummary(family, family.layout.quantiles);
      break;
    case 'samples':
      yield* renderSamples(family, openMetrics);
      break;
    default:
      yield* renderValues(
        family,
        openMetrics && family.type === 'counter' ? `${name}_total` : family.name,
        exemplarText,
      );
  }
}

/** @typedef {(row: number, column: number) => string} ExemplarText */

/**
 * @param {Family} family
 * @param {string} sampleName
 * @param {ExemplarText | undefined} exemplarText
 */
function* renderValues(family, sampleName, exemplarText) {
  const start = `\n${sampleName}`;
  let text = '';
  for (const row of family.rows()) {
    const labels = family.labelText(row, false);
    const value = formatNumber(family.pageOf(row)[family.offsetOf(row)]);
    text += labels === '' ? `${start} ${value}` : `${start}{${labels}} ${value}`;
    if (exemplarText !== undefined) text += exemplarText(row, 0);
    if (text.length >= PIECE_CHARACTERS) {
      yield text;
      text = '';
    }
  }
  yield text;
}

/**
 * @param {Family} family
 * @param {boolean} openMetrics
 */
function* renderSamples(family, openMetrics) {
  const sampleName = /** @type {(row: number) => string} */ (family.sampleName);
  for (const row of family.rows()) {
    let name = sampleName(row);
    if (openMetrics && family.type === 'counter') name = `${name.replace(/_total$/, '')}_total`;
    const labels = family.labelText(row, false);
    const value = formatNumber(family.pageOf(row)[family.offsetOf(row)]);
    const exemplar = openMetrics && family.exemplarAt !== undefined ? family.exemplarAt(row, 0) : undefined;
    yield `\n${name}${labels === '' ? '' : `{${labels}}`} ${value}${exemplar ? formatExemplar(exemplar) : ''}`;
  }
}

/**
 * @param {Family} family
 * @param {readonly number[]} bounds
 * @param {ExemplarText | undefined} exemplarText
 */
function* renderHistogram(family, bounds, exemplarText) {
  const { name } = family;
  const starts = [...bounds.map(String), '+Inf'].map(bound => `\n${name}_bucket{le="${bound}"`);
  const sumColumn = starts.length;
  let text = '';
  for (const row of family.rows()) {
    const page = family.pageOf(row);
    const offset = family.offsetOf(row);
    const marked = family.labelText(row, true);
    const close = marked === '' ? '} ' : `,${marked}} `;
    let count = 0;
    for (let column = 0; column < sumColumn; column++) {
      count += page[offset + column];
      text += starts[column] + close + formatNumber(count);
      if (exemplarText !== undefined) text += exemplarText(row, column);
    }
    text += sumAndCount(family, row, page[offset + sumColumn], count);
    if (text.length >= PIECE_CHARACTERS) {
      yield text;
      text = '';
    }
  }
  yield text;
}

/**
 * @param {Family} family
 * @param {readonly number[]} quantiles
 */
function* renderSummary(family, quantiles) {
  const starts = quantiles.map(quantile => `\n${family.name}{quantile="${quantile}"`);
  const quantileValues = /** @type {(row: number) => ArrayLike<number>} */ (family.quantileValues);
  for (const row of family.rows()) {
    const page = family.pageOf(row);
    const offset = family.offsetOf(row);
    const marked = family.labelText(row, true);
    const close = marked === '' ? '} ' : `,${marked}} `;
    const values = quantileValues(row);
    let text = '';
    for (let i = 0; i < starts.length; i++) text += starts[i] + close + formatNumber(values[i]);
    yield text + sumAndCount(family, row, page[offset], page[offset + 1]);
  }
}

/**
 * @param {Family} family
 * @param {number} row
 * @param {number} sum
 * @param {number} count
 */
function sumAndCount(family, row, sum, count) {
  const labels = family.labelText(row, false);
  const close = labels === '' ? ' ' : `{${labels}} `;
  const start = `\n${family.name}`;
  return `${start}_sum${close}${formatNumber(sum)}${start}_count${close}${formatNumber(count)}`;
}

/**
 * @param {Family} family
 * @returns {ExemplarText}
 */
function exemplarWriter(family) {
  const exemplarAt = /** @type {NonNullable<Family['exemplarAt']>} */ (family.exemplarAt);
  return (row, column) => {
    const exemplar = exemplarAt(row, column);
    return exemplar ? formatExemplar(exemplar) : '';
  };
}

/** @param {Exemplar} exemplar */
function formatExemplar({ labelSet, value, timestamp }) {
  let labels = '';
  for (const name of Object.keys(labelSet)) labels = joinLabels(labels, labelPair(name, labelSet[name]));
  return ` # {${labels}} ${formatNumber(value)} ${timestamp}`;
}

module.exports = { renderFamilies, renderFamily, joinFamilies };
