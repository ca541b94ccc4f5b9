'use strict';

// The only place that writes the text formats. Its input is metric families: a metric of this process
// (exposition/live-family.js), a custom metric object (exposition/sample-family.js), or a family of a whole
// cluster (cluster/store/cluster-family.js). Formats:
// https://prometheus.io/docs/instrumenting/exposition_formats/ (0.0.4) and
// https://github.com/prometheus/OpenMetrics (1.0.0).

const { formatNumber } = require('./number-format');
const { labelPair, escapeHelp, joinLabels } = require('./label-text');

// Text is yielded in pieces of about this many characters: small enough for one slice of an event loop, and
// large enough that the cost per piece does not matter.
const PIECE_CHARACTERS = 65536;

/**
 * How a row's numbers become samples.
 *
 * - value: one number
 * - histogram: one count per bound (not cumulative), the count above the last bound, the sum
 * - summary: the sum, the count; the quantiles come from `quantileValues(row)`
 * - samples: one number, under the name `sampleName(row)`, or under the family's if that is empty
 *
 * @typedef {{kind: 'value'} | {kind: 'samples'} | {kind: 'histogram', bounds: readonly number[]}
 *   | {kind: 'summary', quantiles: readonly number[]}} Layout
 */

/** @typedef {{labelSet: Record<string, unknown>, value: number, timestamp: number}} Exemplar */

/**
 * The input of the text format. Rows are numbers that only the family itself interprets.
 *
 * @typedef {object} Family
 * @property {string} name
 * @property {string} help
 * @property {string} type
 * @property {Layout} layout
 * @property {() => Iterable<number>} rows in output order
 * @property {(row: number) => ArrayLike<number>} pageOf the array that contains a row's numbers
 * @property {(row: number) => number} offsetOf the index of a row's first number in it
 * @property {(row: number, marked: boolean) => string} labelText a row's labels; `marked` if `le` or
 *   `quantile` precedes them
 * @property {(row: number) => ArrayLike<number>} [quantileValues]
 * @property {(row: number) => string | undefined} [sampleName]
 * @property {(row: number, column: number) => Exemplar | undefined | null} [exemplarAt]
 * @property {import('../cluster/store/cached-text').CachedText} [cachedText] its text in the last
 *   scrape; `rows` then returns an Int32Array
 * @property {string} [labelVersion] with `cachedText`: changes whenever the labels of a row may have changed
 */

/**
 * Joins families to a page, each written by renderFamily().
 *
 * @param {string[]} texts
 * @param {boolean} openMetrics
 * @returns {string}
 */
function joinFamilies(texts, openMetrics) {
  return texts.join(separator(openMetrics)) + ending(openMetrics);
}

/**
 * @param {boolean} openMetrics
 * @returns {string} the text between two families
 */
function separator(openMetrics) {
  // Prometheus text has an empty line between families; OpenMetrics allows none.
  return openMetrics ? '\n' : '\n\n';
}

/**
 * @param {boolean} openMetrics
 * @returns {string} the text after the last family
 */
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
  yield headOf(family, openMetrics);
  const textOf = rowWriter(family, openMetrics);
  // A piece for each row if one may take long: quantiles are computed here, and a custom metric's values may
  // be any objects.
  const { kind } = family.layout;
  const enough = kind === 'summary' || kind === 'samples' ? 1 : PIECE_CHARACTERS;
  let text = '';
  for (const row of family.rows()) {
    text += textOf(row);
    if (text.length >= enough) {
      yield text;
      text = '';
    }
  }
  yield text;
}

/**
 * @param {Family} family
 * @param {boolean} openMetrics
 * @returns {string} the lines above a family's samples, without a line feed at their end
 */
function headOf(family, openMetrics) {
  const own = nameOf(family);
  const name = openMetrics && family.type === 'counter' ? baseName(own) : own;
  return `# HELP ${name} ${escapeHelp(String(family.help))}\n# TYPE ${name} ${family.type}`;
}

/**
 * The name of a custom metric object may be any text. Escaping it keeps the other families readable.
 *
 * @param {Family} family
 */
function nameOf(family) {
  return escapeHelp(String(family.name));
}

/**
 * @param {string} name of a counter
 * @returns {string} the name of its family in OpenMetrics
 */
function baseName(name) {
  return name.replace(/_total$/, '');
}

/**
 * @param {Family} family
 * @param {boolean} openMetrics
 * @returns {(row: number) => string} writes the samples of a row, a line feed before each
 */
function rowWriter(family, openMetrics) {
  const exemplarText = openMetrics && family.exemplarAt !== undefined ? exemplarWriter(family) : undefined;
  const isCounter = openMetrics && family.type === 'counter';
  const name = nameOf(family);
  switch (family.layout.kind) {
    case 'histogram':
      return histogramWriter(family, name, family.layout.bounds, exemplarText);
    case 'summary':
      return summaryWriter(family, name, family.layout.quantiles);
    case 'samples':
      return sampleWriter(family, name, isCounter, exemplarText);
    default:
      return valueWriter(family, isCounter ? `${baseName(name)}_total` : name, exemplarText);
  }
}

/** @typedef {(row: number, column: number) => string} ExemplarText */

/**
 * @param {Family} family
 * @param {string} sampleName
 * @param {ExemplarText | undefined} exemplarText
 * @returns {(row: number) => string}
 */
function valueWriter(family, sampleName, exemplarText) {
  const start = `\n${sampleName}`;
  return row => {
    const labels = family.labelText(row, false);
    const value = formatNumber(family.pageOf(row)[family.offsetOf(row)]);
    const text = labels === '' ? `${start} ${value}` : `${start}{${labels}} ${value}`;
    return exemplarText === undefined ? text : text + exemplarText(row, 0);
  };
}

/**
 * @param {Family} family
 * @param {string} familyName
 * @param {boolean} isCounter whether each name has to end with `_total`
 * @param {ExemplarText | undefined} exemplarText
 * @returns {(row: number) => string}
 */
function sampleWriter(family, familyName, isCounter, exemplarText) {
  const sampleName = /** @type {NonNullable<Family['sampleName']>} */ (family.sampleName);
  return row => {
    const own = sampleName(row) || familyName;
    const name = isCounter ? `${baseName(own)}_total` : own;
    const labels = family.labelText(row, false);
    const value = formatNumber(family.pageOf(row)[family.offsetOf(row)]);
    const exemplar = exemplarText === undefined ? '' : exemplarText(row, 0);
    return `\n${name}${labels === '' ? '' : `{${labels}}`} ${value}${exemplar}`;
  };
}

/**
 * @param {Family} family
 * @param {string} name
 * @param {readonly number[]} bounds
 * @param {ExemplarText | undefined} exemplarText
 * @returns {(row: number) => string}
 */
function histogramWriter(family, name, bounds, exemplarText) {
  const starts = [...bounds.map(String), '+Inf'].map(bound => `\n${name}_bucket{le="${bound}"`);
  const sumColumn = starts.length;
  return row => {
    const page = family.pageOf(row);
    const offset = family.offsetOf(row);
    const marked = family.labelText(row, true);
    const close = marked === '' ? '} ' : `,${marked}} `;
    let text = '';
    let count = 0;
    for (let column = 0; column < sumColumn; column++) {
      count += page[offset + column];
      text += starts[column] + close + formatNumber(count);
      if (exemplarText !== undefined) text += exemplarText(row, column);
    }
    return text + sumAndCount(family, name, row, page[offset + sumColumn], count);
  };
}

/**
 * @param {Family} family
 * @param {string} name
 * @param {readonly number[]} quantiles
 * @returns {(row: number) => string}
 */
function summaryWriter(family, name, quantiles) {
  const starts = quantiles.map(quantile => `\n${name}{quantile="${quantile}"`);
  const quantileValues = /** @type {(row: number) => ArrayLike<number>} */ (family.quantileValues);
  return row => {
    const page = family.pageOf(row);
    const offset = family.offsetOf(row);
    const marked = family.labelText(row, true);
    const close = marked === '' ? '} ' : `,${marked}} `;
    const values = quantileValues(row);
    let text = '';
    for (let i = 0; i < starts.length; i++) text += starts[i] + close + formatNumber(values[i]);
    return text + sumAndCount(family, name, row, page[offset], page[offset + 1]);
  };
}

/**
 * @param {Family} family
 * @param {string} name
 * @param {number} row
 * @param {number} sum
 * @param {number} count
 */
function sumAndCount(family, name, row, sum, count) {
  const labels = family.labelText(row, false);
  const close = labels === '' ? ' ' : `{${labels}} `;
  const start = `\n${name}`;
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

module.exports = {
  PIECE_CHARACTERS,
  renderFamily,
  headOf,
  rowWriter,
  baseName,
  joinFamilies,
  separator,
  ending,
};
