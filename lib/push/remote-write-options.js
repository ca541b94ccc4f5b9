'use strict';

// Checks the options of RemoteWrite and of its methods.

const { inspect } = require('util');
const { checkLabelNamesAreValid } = require('../registry/names');
const { checkOptionNames } = require('../options/option-names');
const { MAX_TIMER } = require('../event-loop/timers');
const { invalidOption, invalidLabel } = require('../options/coded-error');

const OPTIONS = new Set([
  'labels',
  'headers',
  'timeout',
  'interval',
  'retries',
  'protocol',
  'nativeHistograms',
]);

const DEFAULT_TIMEOUT = 30_000;
const DEFAULT_RETRIES = 5;

/**
 * @param {unknown} url
 * @param {any} options as RemoteWrite's constructor gets them
 * @returns {import('./remote-write-session').SessionSettings}
 * @throws {Error} if one is not valid
 */
function sessionSettings(url, options) {
  checkOptionNames('RemoteWrite', options, OPTIONS);
  const {
    labels,
    headers = {},
    timeout = DEFAULT_TIMEOUT,
    retries = DEFAULT_RETRIES,
    protocol,
    nativeHistograms = false,
  } = options ?? {};
  checkMilliseconds('timeout', timeout);
  if (!Number.isInteger(retries) || retries < 0)
    throw invalidOption(`retries must be a whole number: ${inspect(retries)}`);
  if (protocol !== undefined && protocol !== '1.0' && protocol !== '2.0')
    throw invalidOption(`protocol must be '1.0' or '2.0': ${inspect(protocol)}`);
  if (typeof nativeHistograms !== 'boolean')
    throw invalidOption(`nativeHistograms must be true or false: ${inspect(nativeHistograms)}`);
  return {
    url: checkedUrl(url),
    labels: checkedLabels(labels),
    headers: checkedHeaders(headers),
    timeout,
    retries,
    protocol,
    nativeHistograms,
  };
}

/**
 * @param {string} name
 * @param {unknown} value
 * @throws {TypeError}
 */
function checkMilliseconds(name, value) {
  if (typeof value === 'number' && value >= 1 && value <= MAX_TIMER) return;
  throw invalidOption(`${name} must be a number of milliseconds: ${inspect(value)}`);
}

/**
 * @param {unknown} url
 * @returns {string}
 * @throws {TypeError}
 */
function checkedUrl(url) {
  const text = /** @type {any} */ (url)?.href ?? url;
  // The text is not shown: it may contain a password.
  if (typeof text !== 'string' || !URL.canParse(text) || !/^https?:$/.test(new URL(text).protocol))
    throw invalidOption('RemoteWrite expected the URL of a receiver, http: or https:');
  return text;
}

/**
 * Labels or headers, as texts.
 *
 * @param {string} option
 * @param {Record<string, unknown>} values
 * @returns {Record<string, string>}
 * @throws {TypeError} for the first one that has no text, such as a variable that is missing
 */
function textsOf(option, values) {
  const entries = Object.entries(values).map(([name, value]) => {
    if (!['string', 'number', 'boolean'].includes(typeof value))
      throw invalidOption(`${option}.${name} must be a text: ${inspect(value)}`);
    return [name, String(value)];
  });
  return Object.fromEntries(entries);
}

/**
 * @param {any} labels
 * @returns {Record<string, string>}
 * @throws {TypeError} if there is no `instance`
 * @throws {Error} if a name is not valid
 */
function checkedLabels(labels) {
  if (typeof labels?.instance !== 'string' || labels.instance === '') {
    throw invalidOption(
      'RemoteWrite needs labels.instance: series of several processes that have no label to tell them apart overwrite each other',
    );
  }
  checkLabelNamesAreValid(Object.keys(labels));
  const taken = ['__name__', 'le', 'quantile'].find(name => Object.hasOwn(labels, name));
  if (taken !== undefined) throw invalidLabel(`labels must not have a ${taken}`, TypeError);
  return textsOf('labels', labels);
}

/**
 * @param {any} headers
 * @returns {Record<string, string>}
 * @throws {TypeError} if it is not an object of texts
 */
function checkedHeaders(headers) {
  // Headers, Map and lists have no entries of an object: requests would have no authorization.
  if (typeof headers !== 'object' || headers === null || Symbol.iterator in headers)
    throw invalidOption(`headers must be an object, as in { Authorization: '...' }: ${typeof headers}`);
  return textsOf('headers', headers);
}

module.exports = { sessionSettings, checkMilliseconds };
