'use strict';

// Deno throws an error if a program without --allow-env reads a variable.

/**
 * @param {string} name
 * @returns {string | undefined} the variable of the environment; undefined, too, if it cannot be read
 */
function environmentVariable(name) {
  try {
    return process.env[name];
  } catch {
    return undefined;
  }
}

/** @returns {boolean} whether NODE_ENV is `production` */
function isProduction() {
  try {
    // Written out, because bundlers replace this expression.
    return process.env.NODE_ENV === 'production';
  } catch {
    return false;
  }
}

module.exports = { environmentVariable, isProduction };
