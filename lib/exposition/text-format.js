'use strict';

// The only place that writes the text formats. Its input is metric families: a metric of this process
// (exposition/live-family.js), a custom metric object (exposition/sample-family.js), or a family of a whole
// cluster (store/cluster-family.js). Formats:
// https://prometheus.io/docs/instrumenting/exposition_formats/ (0.0.4) and
// https://github.com/prometheus/OpenMetrics (1.0.0).

const { kindOf, samplesOf } = require('../series/layouts');
const { formatNumber } = require('./number-format');
const { labelsText, escapeHelp } = require('./label-text');

// Text is yielded in pieces of about this many characters: small enough for one slice of an event loop, and
// large enough that the cost per piece does not matter.
const PIECE_CHARACTERS = 65536;

/** @type {readonly number[]} */
const NOTHING = [];

/** @typedef {import('../series/layouts').Layout} Layout */
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
 * @property {(row: number, marked: boolean) => LabelPair[]} labels of a row; `marked`: of its samples that
 *   have a marker, without that
 * @property {(row: number, marked: boolean) => string} labelText the same as text
 * @property {(row: number) => ArrayLike<number>} [quantileValues]
 * @property {(row: number) => string | undefined} [sampleName] if each row is one number with a name of its
 *   own, or with the family's if that is empty
 * @property {(row: number, column: number) => Exemplar | undefined | null} [exemplarAt]
 * @property {{startAt: (row: number) => number}} [starts] when a row began to count, seconds since 1970; 0 if
 *   that is unknown
 * @property {(row: number) => import('../series/merged-buckets').Buckets} [bucketsAt] the sparse
 *   buckets of a row
 * @property {(row: number) => Exemplar[]} [nativeExemplarsAt] the exemplars of these
 * @property {() => void} [end] to be called when the family will not be read any more; until then, or until
 *   it is garbage-collected, recording must preserve what it changes
 * @property {import('../store/cached-text').CachedText} [cachedText] its text in the last
 *   scrape; `rows` then returns an Int32Array, and the labels of a row never change
 */

/** @typedef {import('./formats').Format} Format */
/** @typedef {import('./label-text').LabelPair} LabelPair */

/**
 * Lines of text: the head of each family, and a line for each sample.
 *
 * @param {Omit<Format, 'write' | 'head' | 'rowWriter'>} traits
 * @returns {Required<Pick<Format, 'head' | 'rowWriter'>> & Format}
 */
function textFormat(traits) {
  return {
    ...traits,
    head: family => headOf(family, traits),
    rowWriter: family => rowWriter(family, traits),
    write: family => renderFamily(family, traits),
  };
}

/** @typedef {Parameters<typeof textFormat>[0]} Traits */

/**
 * Writes one family, without a line feed at its end.
 *
 * @param {Family} family
 * @param {Traits} traits
 * @returns {Generator<string, void>}
 */
function* renderFamily(family, traits) {
  yield headOf(family, traits);
  const textOf = rowWriter(family, traits);
  // A piece for each row if one may take long: quantiles are computed here, and a custom metric's values may
  // be any objects.
  const enough = takesLong(family) ? 1 : PIECE_CHARACTERS;
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
 * @returns {boolean} whether a single row may take long, and its text depends on more than labels and numbers
 */
function takesLong({ layout, sampleName }) {
  return kindOf(layout).isComputed || sampleName !== undefined;
}

/**
 * @param {Family} family
 * @param {Traits} traits
 * @returns {string} the lines above a family's samples, without a line feed at their end
 */
function headOf(family, { familyName }) {
  const name = familyName(nameOf(family), family.type);
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
 * @param {Family} family
 * @returns {(row: number) => number[]} the values of a row's samples, valid until the next call
 */
function valueReader(family) {
  const { read } = kindOf(family.layout);
  const values = samplesOf(family.layout).map(() => 0.5);
  return row => {
    read(values, family.pageOf(row), family.offsetOf(row), family.quantileValues?.(row) ?? NOTHING);
    return values;
  };
}

/**
 * @param {Family} family
 * @param {Traits} traits
 * @returns {(row: number) => string} writes the samples of a row, a line feed before each
 */
function rowWriter(family, { hasExemplars, sampleName }) {
  const exemplarText = hasExemplars && family.exemplarAt !== undefined ? exemplarWriter(family) : undefined;
  const samples = samplesOf(family.layout);
  const markedCount = samples.findIndex(({ mark }) => mark === undefined);
  const ends = endsOf(samples, kindOf(family.layout).marker);
  const familyName = nameOf(family);
  let start = `\n${sampleName(familyName, family.type)}`;
  const valuesOf = valueReader(family);
  return row => {
    const values = valuesOf(row);
    if (family.sampleName !== undefined)
      start = `\n${sampleName(family.sampleName(row) || familyName, family.type)}`;
    let text = '';
    let close = '';
    if (markedCount > 0) {
      const marked = family.labelText(row, true);
      close = marked === '' ? '} ' : `,${marked}} `;
    }
    for (let i = 0; i < ends.length; i++) {
      if (i === markedCount) {
        const labels = family.labelText(row, false);
        close = labels === '' ? ' ' : `{${labels}} `;
      }
      text += start + ends[i] + close + formatNumber(values[i]);
      if (exemplarText === undefined) continue;
      const { column } = samples[i];
      if (column !== undefined) text += exemplarText(row, column);
    }
    return text;
  };
}

/**
 * @type {WeakMap<object, string[]>} by samples: what follows the name of the metric. Made once for all pages
 *   and histograms with the same bounds
 */
const knownEnds = new WeakMap();

/**
 * @param {import('../series/layouts').RowSample[]} samples
 * @param {string | undefined} marker
 * @returns {string[]}
 */
function endsOf(samples, marker) {
  let ends = knownEnds.get(samples);
  if (ends === undefined) {
    ends = samples.map(({ suffix, mark }) => suffix + (mark === undefined ? '' : `{${marker}="${mark}"`));
    knownEnds.set(samples, ends);
  }
  return ends;
}

/**
 * @param {Family} family
 * @returns {(row: number, column: number) => string}
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
  const labels = labelsText(/** @type {LabelPair[]} */ (Object.entries(labelSet)));
  return ` # {${labels}} ${formatNumber(value)} ${timestamp}`;
}

module.exports = {
  PIECE_CHARACTERS,
  textFormat,
  takesLong,
  valueReader,
};
