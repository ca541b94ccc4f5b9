'use strict';

// Reads the native histogram of the requests from the cluster's page, as Prometheus does: it is in the
// protobuf format only. The messages are those of https://github.com/prometheus/client_model, metrics.proto.

const ACCEPT = 'application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited';

/** Numbers of the fields that are needed. */
const FAMILY = { name: 1, metric: 4 };
const METRIC = { histogram: 7 };
const HISTOGRAM = { schema: 5, zeroCount: 7, span: 12, deltas: 13 };
const SPAN = { offset: 1, length: 2 };

/**
 * The observations of a histogram without labels: how many there are in each bucket.
 *
 * @typedef {{schema: number, counts: Map<number, number>}} Buckets
 */

/**
 * @param {string} metricsUrl
 * @param {string} name of a histogram whose observations are above zero
 * @returns {Promise<Buckets | undefined>} undefined if the library serves no such page
 */
async function readNativeHistogram(metricsUrl, name) {
  const response = await fetch(metricsUrl, { headers: { accept: ACCEPT } });
  const page = Buffer.from(await response.arrayBuffer());
  if (!response.headers.get('content-type')?.startsWith('application/vnd.google.protobuf')) return undefined;
  for (const family of delimited(page)) {
    const fields = fieldsOf(family);
    if (String(fields.get(FAMILY.name)[0]) !== name) continue;
    const [metric] = fields.get(FAMILY.metric);
    const [histogram] = fieldsOf(metric).get(METRIC.histogram);
    return bucketsOf(fieldsOf(histogram));
  }
  return undefined;
}

/** A span is a run of buckets; each count is written as its difference to the one before. */
function bucketsOf(fields) {
  const [schema = 0] = fields.get(HISTOGRAM.schema) ?? [];
  const deltas = (fields.get(HISTOGRAM.deltas) ?? []).flatMap(packed => [...varints(packed)].map(signed));
  const counts = new Map();
  let index = 0;
  let count = 0;
  for (const span of fields.get(HISTOGRAM.span) ?? []) {
    const spanFields = fieldsOf(span);
    index += signed(spanFields.get(SPAN.offset)?.[0] ?? 0);
    for (let i = 0; i < spanFields.get(SPAN.length)[0]; i++) {
      count += deltas.shift();
      counts.set(index++, count);
    }
  }
  return { schema: signed(schema), counts };
}

/**
 * The quantile of what was observed between two pages, estimated as Prometheus 3 does: bucket i of a schema
 * ends at `2 ** (i * 2 ** -schema)`.
 *
 * @param {Buckets} before
 * @param {Buckets} after
 * @param {number} share from 0 to 1
 * @returns {number} NaN if there was nothing
 */
function quantileBetween(before, after, share) {
  const rise = Array.from(after.counts, ([index, count]) => [index, count - (before.counts.get(index) ?? 0)]);
  let rank = share * rise.reduce((sum, [, count]) => sum + count, 0);
  for (const [index, count] of rise) {
    if (count > 0 && rank <= count) return 2 ** ((index - 1 + rank / count) * 2 ** -after.schema);
    rank -= count;
  }
  return NaN;
}

/**
 * @param {Buffer} page
 * @returns {Generator<Buffer>} its messages, each of which follows its length
 */
function* delimited(page) {
  const position = { at: 0 };
  while (position.at < page.length) yield bytesAt(page, position);
}

/**
 * @param {Buffer} message
 * @returns {Map<number, any[]>} by field: numbers, or the bytes of strings and messages
 */
function fieldsOf(message) {
  const fields = new Map();
  const position = { at: 0 };
  while (position.at < message.length) {
    const tag = varintAt(message, position);
    const [field, wireType] = [tag >>> 3, tag & 7];
    let value;
    if (wireType === 0) value = varintAt(message, position);
    else if (wireType === 2) value = bytesAt(message, position);
    else position.at += 8; // a double
    fields.set(field, [...(fields.get(field) ?? []), value]);
  }
  return fields;
}

function bytesAt(bytes, position) {
  const length = varintAt(bytes, position);
  return bytes.subarray(position.at, (position.at += length));
}

function* varints(bytes) {
  const position = { at: 0 };
  while (position.at < bytes.length) yield varintAt(bytes, position);
}

/** Seven bits a byte, the lowest first. */
function varintAt(bytes, position) {
  let value = 0;
  for (let factor = 1; ; factor *= 128) {
    const byte = bytes[position.at++];
    value += (byte & 127) * factor;
    if (byte < 128) return value;
  }
}

/** Zigzag: 0, -1, 1, -2, 2 are 0, 1, 2, 3, 4. */
function signed(value) {
  return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
}

module.exports = { readNativeHistogram, quantileBetween };
