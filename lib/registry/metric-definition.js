'use strict';

// Checks of a registry: that what it gets is a metric, and that each name belongs to only one metric.

const { inspect } = require('util');
const { codedError } = require('../options/coded-error');

const ONE_LINE = { compact: true, breakLength: Infinity };

/** What two metrics of one name must agree in. */
const DEFINITION = ['labelNames', 'buckets', 'percentiles', 'nativeHistogramBucketFactor'];

/**
 * @param {any} existing
 * @param {new (config: any) => any} Type
 * @param {any} config
 * @returns {string | undefined} how a metric that exists differs from one that is wanted
 */
function differenceOf(existing, Type, config) {
  // Checks the configuration, and has its defaults.
  const wanted = new Type({ ...config, registers: [] });
  if (existing.type !== wanted.type) return `is a ${existing.type}, not a ${wanted.type}`;
  // A metric of another copy of this package is compared by the name of its class.
  if (!(existing instanceof Type) && existing.constructor?.name !== Type.name)
    return `is not of the class ${Type.name}`;
  const option = DEFINITION.find(name => JSON.stringify(existing[name]) !== JSON.stringify(wanted[name]));
  if (option === undefined) return undefined;
  return `has the ${option} ${inspect(existing[option], ONE_LINE)}, not ${inspect(wanted[option], ONE_LINE)}`;
}

/**
 * @param {any} value its name is not needed: what it exposes has one
 * @returns {boolean} whether it is a metric
 */
function isMetric(value) {
  return typeof value?.get === 'function' || typeof value?.getForPromString === 'function';
}

/** @param {string} name */
function nameTaken(name) {
  const message = `A metric with the name ${name} has already been registered.`;
  return codedError('ALREADY_REGISTERED', Error, message);
}

/**
 * @param {any} error of a registry, whichever copy of this package has thrown it
 * @param {string} advice
 * @returns {any} the same or, if it is about a name that is taken, one that also says what to do
 */
function withAdvice(error, advice) {
  if (!/ has already been registered\.$/.test(error?.message)) return error;
  return codedError('ALREADY_REGISTERED', Error, error.message, ` ${advice}`);
}

module.exports = { isMetric, differenceOf, nameTaken, withAdvice };
