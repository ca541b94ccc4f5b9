'use strict';

// The options of AggregatorRegistry: their checks, and the environment variables that can set them.

const fs = require('node:fs');
const { format, inspect } = require('node:util');
const { checkOptionNames } = require('../options/option-names');
const { environmentVariable } = require('../options/environment');
const { warnOnce } = require('../options/warnings');
const { checkedMaxIdle } = require('../options/max-idle');
const { formatOf, isSupported, contentTypesOf } = require('../exposition/formats');
const { DEFAULT_LABELS } = require('../registry/metric-view');
const { invalidOption } = require('../options/coded-error');

const PREFIX = 'PROM_CLIENT_CLUSTER_';

/**
 * @typedef {object} ClusterOptions
 * @property {number} [timeout] milliseconds
 * @property {readonly string[]} [formats] some of `text`, `openmetrics` and `protobuf`
 * @property {number} [maxIdleSeconds]
 * @property {string} [directory]
 * @property {number} [retiredMaxAge] milliseconds
 * @property {boolean} [inPlace]
 * @property {string | URL} [thread] path or file: URL
 * @property {boolean} [includePrimary]
 * @property {number} [checkpointInterval] milliseconds, 0 for none; if not given, it follows their cost
 * @property {boolean} [activeSeries]
 * @property {string | false} [group] name, or absolute path of its directory; false for none
 */

/** Options of clusterMetrics() and clusterMetricsBytes(). */
const CALL_NAMES = new Set(['timeout', 'selfMetrics', 'gzip', 'contentType', 'names']);

const isText = (/** @type {unknown} */ value) => typeof value === 'string' && value !== '';
const isTime = (/** @type {unknown} */ value) => typeof value === 'number' && value >= 0;

const TIME = { isValid: isTime, what: 'a number of milliseconds', read: millisecondsOf };

/**
 * What each option must be, and how the value of its environment variable becomes an option, if there is one.
 * `maxIdleSeconds` and `formats` have checks of their own, and the others may be anything.
 *
 * @type {Record<keyof ClusterOptions, {
 *   isValid?: (value: any) => boolean, what?: string, read?: (text: string) => unknown,
 * }>}
 */
const OPTIONS = {
  timeout: TIME,
  formats: { read: text => text.toLowerCase().split(/\s*,\s*/) },
  maxIdleSeconds: {},
  directory: { isValid: isText, what: 'a path', read: text => text },
  retiredMaxAge: TIME,
  inPlace: {},
  thread: { isValid: file => typeof file === 'string' || file instanceof URL, what: 'a path or a file: URL' },
  includePrimary: { read: booleanOf },
  checkpointInterval: {
    isValid: interval => interval === 0 || (isTime(interval) && interval >= 100),
    what: '0 or at least 100 milliseconds',
    read: millisecondsOf,
  },
  activeSeries: {},
  group: {
    isValid: group => group === false || isText(group),
    what: 'a name or an absolute path, or false',
  },
};

const NAMES = new Set(Object.keys(OPTIONS));

/** Those that all AggregatorRegistry objects of a process share; `group` is compared by itself. */
const SHARED_OPTIONS = [...NAMES].filter(
  name => !['timeout', 'formats', 'maxIdleSeconds', 'group'].includes(name),
);

/**
 * The options of an AggregatorRegistry, with those of the environment that the program does not set.
 *
 * @param {ClusterOptions} options of the program
 * @param {string} [owner] name of the class, if another one has these options
 * @param {ReadonlySet<string>} [names] the options that the class knows: all others are reported
 * @returns {ClusterOptions}
 * @throws {TypeError} if an option of the program is not valid
 */
function clusterOptions(options, owner = 'AggregatorRegistry', names = NAMES) {
  checkOptionNames(owner, options, names, names !== NAMES);
  checkOptions(options);
  const set = Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
  return { ...fromEnvironment(), ...set };
}

/**
 * @param {any} argument of a constructor
 * @returns {boolean} whether it can be the options; a registry or a list of registries cannot
 */
function isOptions(argument) {
  const isObject = typeof argument === 'object' && argument !== null && !Array.isArray(argument);
  return isObject && argument[DEFAULT_LABELS] === undefined;
}

/** @returns {ClusterOptions} the valid ones; others are reported once */
function fromEnvironment() {
  /** @type {Record<string, unknown>} */
  const options = {};
  for (const [option, { read }] of Object.entries(OPTIONS)) {
    const variable = PREFIX + option.replace(/[A-Z]/g, '_$&').toUpperCase();
    const text = read && environmentVariable(variable)?.trim();
    if (!read || !text) continue;
    try {
      options[option] = read(text);
      checkOptions({ [option]: options[option] });
    } catch (error) {
      delete options[option];
      const { message } = /** @type {Error} */ (error);
      warnOnce(variable, `${variable}=${text} is ignored: ${message}`);
    }
  }
  return options;
}

/**
 * @param {string} text
 * @returns {number | string} the text itself if it is not a number; checkOptions() then refuses it
 */
function millisecondsOf(text) {
  return /^\d+(\.\d+)?$/.test(text) ? Number(text) : text;
}

/**
 * @param {string} text
 * @throws {TypeError}
 */
function booleanOf(text) {
  if (/^(1|true)$/i.test(text)) return true;
  if (/^(0|false)$/i.test(text)) return false;
  throw new TypeError('use 1 or true, 0 or false');
}

/**
 * @param {ClusterOptions} options
 * @throws {TypeError} if one of them is not valid
 * @throws {RangeError} if maxIdleSeconds is not valid
 */
function checkOptions(options) {
  const { maxIdleSeconds, formats } = options;
  if (maxIdleSeconds !== undefined) checkedMaxIdle(maxIdleSeconds);
  if (formats !== undefined) contentTypesOf(formats);
  for (const [name, { isValid, what }] of Object.entries(OPTIONS)) {
    const value = /** @type {any} */ (options)[name];
    if (value !== undefined && isValid?.(value) === false)
      throw invalidOption(`${name} must be ${what}: ${inspect(value)}`);
  }
}

/**
 * Reports, once, that options differ from those of the first object, which apply to all.
 *
 * @param {string} owner of the options, the class of the objects
 * @param {readonly string[]} names of the options that all objects share
 * @param {{options: Record<string, unknown>, hasWarned: boolean}} shared the options of the first object
 * @param {Record<string, unknown>} options of another one
 */
function warnIfOptionsDiffer(owner, names, shared, options) {
  const name = names.find(
    option => options[option] !== undefined && textOf(options[option]) !== textOf(shared.options[option]),
  );
  if (name === undefined || shared.hasWarned) return;
  shared.hasWarned = true;
  process.emitWarning(
    `${owner}: the option '${name}' differs from that of the first ${owner}, which applies to all`,
    { code: 'PROM_CLIENT_CLUSTER_OPTIONS' },
  );
}

/**
 * @param {unknown} option
 * @returns {string} the same for all values that mean "none"
 */
function textOf(option) {
  return inspect(option instanceof URL ? option.href : option || '');
}

/**
 * Reports that the directory does not exist, so another one is used.
 *
 * @param {string | undefined} directory
 * @param {string} [owner] of the option
 */
function warnIfMissing(directory, owner = 'AggregatorRegistry') {
  if (directory === undefined || fs.existsSync(directory)) return;
  warnOnce('directory', `${owner}: the directory ${inspect(directory)} does not exist: another is used`);
}

/**
 * Reads the options of clusterMetricsBytes(). `nativeContentType`: the format if there are native histograms.
 *
 * @param {any} options
 * @param {{timeout: number, contentType: string}} defaults those of the registry
 * @param {string} [caller] name of the method
 * @returns {{timeout: number, format: import('./wire/scrape-callers').Format}}
 * @throws {TypeError} if one of them is not valid
 */
function pageRequest(options, defaults, caller = 'clusterMetricsBytes()') {
  checkCallOptions(options, caller);
  const { gzip = false, timeout = defaults.timeout, selfMetrics = false, names } = options ?? {};
  const { contentType = defaults.contentType, nativeContentType = contentType } = options ?? {};
  checkOptions({ timeout });
  for (const each of [contentType, nativeContentType])
    if (!isSupported(each)) throw invalidOption(format('Content type %s is unsupported', each));
  if (names !== undefined && !(Array.isArray(names) && names.every(name => typeof name === 'string'))) {
    throw invalidOption('names must be a list of names of metrics');
  }
  const formats = { format: formatOf(contentType).name, nativeFormat: formatOf(nativeContentType).name };
  return { timeout, format: { ...formats, gzip: Boolean(gzip), selfMetrics: Boolean(selfMetrics), names } };
}

/**
 * Reports options of a call that are misspelt.
 *
 * @param {unknown} options
 * @param {string} caller name of the method
 */
function checkCallOptions(options, caller) {
  checkOptionNames(caller, options, CALL_NAMES);
}

module.exports = {
  SHARED_OPTIONS,
  clusterOptions,
  isOptions,
  checkOptions,
  pageRequest,
  checkCallOptions,
  warnIfMissing,
  warnIfOptionsDiffer,
};
