'use strict';

// The options of a metric, as the program passes them to the constructor.

const { inspect } = require('util');
const { checkMetricName, checkLabelNamesAreValid } = require('../registry/names');
const { reportIfMisspelt } = require('../options/option-names');
const { adviseOnce } = require('../options/warnings');
const { setOwn } = require('../series/label-form');
const { codedError, invalidOption } = require('../options/coded-error');
const { checkedMaxIdle } = require('../options/max-idle');
const { REGISTRY_STATE } = require('../registry/metric-view');

/** The options of every metric. */
const OPTIONS = new Set([
  ...['name', 'help', 'labelNames', 'registers', 'aggregator', 'collect', 'enableExemplars'],
  ...['maxSeries', 'maxIdleSeconds'],
]);

/**
 * Copies the keys of a configuration to a metric that has the defaults, and checks what all types share.
 *
 * @param {any} metric
 * @param {any} config
 * @param {ReadonlySet<string>} options names of all options of the type
 * @throws {TypeError} if `labelNames` or `registers` is not an array
 * @throws {Error} if help or name is missing, or a name is not valid
 */
function applyOptions(metric, config, options) {
  for (const key of Object.keys(config)) {
    if (!options.has(key)) reportIfMisspelt(`Metric ${config.name}`, key, options);
    // An option that is there but undefined or null means its default. Some programs write
    // `registers: isServer && [registry]`.
    if (key === 'registers' && !config.registers) continue;
    if (config[key] != null || !(key in metric)) setOwn(metric, key, config[key]);
  }
  if (!metric.help) throw invalidOption('Missing mandatory help parameter', Error);
  if (!metric.name) throw codedError('INVALID_NAME', Error, 'Missing mandatory name parameter');
  checkMetricName(metric.name);
  checkArray('labelNames', metric.labelNames);
  checkLabelNamesAreValid(metric.labelNames);
  if (typeof metric.registers[Symbol.iterator] !== 'function') checkArray('registers', metric.registers);
  const reserved = metric.labelNames.find((/** @type {string} */ label) => /^__/.test(label));
  if (reserved !== undefined)
    adviseOnce(
      'label __',
      `Metric ${metric.name}: Prometheus reserves labels that begin with __, such as ${reserved}`,
    );
}

/**
 * @param {string} option
 * @param {unknown} value
 * @throws {TypeError} if it is not an array
 */
function checkArray(option, value) {
  if (Array.isArray(value)) return;
  throw invalidOption(`${option} must be an array: ${inspect(value, { depth: 0 })}`);
}

/**
 * @param {unknown} value of a bucket or percentile, which may be a text
 * @returns {boolean} whether the text that is printed of it is a number
 */
function isNumeric(value) {
  try {
    const text = String(value).trim();
    return text !== '' && !Number.isNaN(Number(text));
  } catch {
    return false;
  }
}

/**
 * @param {any} metric
 * @returns {number} its option `maxSeries`; Infinity if there is no limit
 * @throws {TypeError} if it is not a positive integer
 */
function maxSeriesOf({ maxSeries }) {
  const limit = maxSeries ?? Infinity;
  if (limit === Infinity || (Number.isInteger(limit) && limit > 0)) return limit;
  throw invalidOption(`maxSeries must be a positive integer: ${inspect(limit)}`);
}

/**
 * @param {any} metric
 * @returns {number} its option `maxIdleSeconds`, or else that of the first of its registries; 0 if there is
 *   none
 * @throws {RangeError} if it is not a positive finite number
 */
function maxIdleOf({ maxIdleSeconds, registers }) {
  if (maxIdleSeconds != null) return checkedMaxIdle(maxIdleSeconds);
  const [registry] = registers;
  return registry?.[REGISTRY_STATE]?.maxIdleSeconds ?? 0;
}

module.exports = { OPTIONS, applyOptions, checkArray, isNumeric, maxSeriesOf, maxIdleOf };
