'use strict';

// Runs on the primary's loop. Finds the main file of the aggregator thread: the package's own file or, if the
// library is part of an application's bundle, the bundle of `prom-client-cluster/aggregator-thread`.

const fs = require('node:fs');
const path = require('node:path');
const { fileURLToPath } = require('node:url');

/** Names of the thread's bundle, next to the application's or among the assets of a single executable. */
const BUNDLED = ['.js', '.mjs', '.cjs'].map(extension => `prom-client-cluster-thread${extension}`);

/**
 * What a thread starts with.
 *
 * @typedef {object} ThreadFile
 * @property {string} main path of the file, or its code
 * @property {boolean} isCode
 */

/**
 * @param {string | URL | undefined} chosen the option `thread`
 * @returns {ThreadFile | undefined} undefined if there is none
 */
function findThread(chosen) {
  const code = chosen === undefined ? assetOfExecutable() : undefined;
  if (code !== undefined) return { main: code, isCode: true };
  const files = chosen === undefined ? places() : [pathOf(chosen)];
  const main = files.find(file => fs.existsSync(file));
  return main === undefined ? undefined : { main, isCode: false };
}

/** @returns {string | undefined} the thread's code in a single executable of Node.js that contains it */
function assetOfExecutable() {
  // Not with require(), because bundlers would look for the module.
  const sea = process.getBuiltinModule?.('node:sea');
  if (!sea?.isSea()) return undefined;
  try {
    return sea.getAsset(BUNDLED[0], 'utf8');
  } catch {
    return undefined;
  }
}

/** @returns {string[]} where the file may be, the likeliest place first */
function places() {
  const [, program] = process.argv;
  const files = program === undefined ? [] : bundledIn(path.dirname(program));
  // An ES module has no __dirname. In any other bundle, __dirname is the directory of the bundle.
  if (typeof __dirname !== 'string') return files;
  files.unshift(...bundledIn(__dirname));
  // Tools that collect the files of an application, such as Next.js' file tracing, recognise this expression.
  if (__dirname.endsWith(path.join('cluster', 'primary')))
    files.unshift(path.join(__dirname, '../../aggregator/aggregator-thread.js'));
  return files;
}

/** @param {string} directory */
function bundledIn(directory) {
  return BUNDLED.map(name => path.join(directory, name));
}

/** @param {string | URL} file */
function pathOf(file) {
  try {
    return fileURLToPath(file);
  } catch {
    return path.resolve(String(file)); // not a URL
  }
}

module.exports = { findThread };
