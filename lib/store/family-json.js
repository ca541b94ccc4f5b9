'use strict';

// One worker's part of a family as prom-client's JSON, for a custom aggregator.

const { NAME_LABEL } = require('./row-map');
const { pageMaskOf } = require('../series/number-pages');
const { kindOf, samplesOf, widthOf } = require('../series/layouts');
const { quantileFrom } = require('./family-quantiles');
const { startOf } = require('../series/row-starts');

/** @typedef {import('./cluster-family').Source} Source */

/** @param {Source} source */
function sourceAsJson(source) {
  const { definition, pages, pageShift, starts, extras } = source;
  const { name, help, type, aggregator, layout } = definition;
  const { marker = '', hasOwnNames, read } = kindOf(layout);
  const samples = samplesOf(layout);
  const width = widthOf(layout);
  const pageMask = pageMaskOf(pageShift);
  const numbers = new Array(samples.length).fill(0);
  const live = [...source.order];
  const values = live.flatMap(row => {
    const digest = extras.digestOf?.(row);
    const computed = digest === undefined ? [] : layout.marks.map(mark => quantileFrom(digest, mark));
    read(numbers, pages[row >> pageShift], (row & pageMask) * width, computed);
    const labels = source.rows.labelsOf(row);
    const own = hasOwnNames ? labels[NAME_LABEL] : undefined;
    if (own !== undefined) delete labels[NAME_LABEL];
    return samples.map(({ suffix, mark }, i) => {
      const metricName = own ?? (suffix === '' ? undefined : name + suffix);
      const all = mark === undefined ? labels : { ...labels, [marker]: mark };
      const value = numbers[i];
      return metricName === undefined ? { value, labels: all } : { value, metricName, labels: all };
    });
  });
  const { buckets } = extras;
  if (buckets === undefined) return { name, help, type, aggregator, values };
  // Programs without native histograms load nothing of them.
  const { NO_BUCKETS } = require('../series/merged-buckets');
  const { nativeJson } = require('../series/native-json');
  const nativeHistograms = live.map(row => {
    const sum = pages[row >> pageShift][(row & pageMask) * width + width - 1];
    const createdTimestamp = (starts && startOf(starts, row)) || undefined;
    const others = { labels: source.rows.labelsOf(row), sum, createdTimestamp, exemplars: [] };
    return nativeJson(buckets.read(row) ?? NO_BUCKETS, others);
  });
  return { name, help, type, aggregator, values, nativeHistograms };
}

module.exports = { sourceAsJson };
