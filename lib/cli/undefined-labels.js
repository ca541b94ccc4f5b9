'use strict';

// Queries of dashboards and rules that ask for `label="undefined"`: that is on the page of one process for a
// label without a value, and the label is missing on those of a cluster, a group and threads.

const fs = require('node:fs');
const path = require('node:path');

const MATCHER = /[A-Za-z_]\w*\s*(?:!=|=~|!~|=)\s*\\*["']((?:[^"'\\]*\|)?undefined(?:\|[^"'\\]*)?)\\*["']/g;
const MAX_BYTES = 16 * 1024 * 1024;
const MAX_FILES = 20_000;

/**
 * @param {string[]} paths files, or directories with JSON and YAML files
 * @returns {{file: string, line: number, text: string}[]}
 * @throws {Error} if one of the paths does not exist
 */
function findUndefinedLabels(paths) {
  const found = [];
  let count = 0;
  for (const file of filesOf(paths)) {
    if (++count > MAX_FILES) break;
    for (const [i, line] of linesOf(file).entries()) {
      for (const [text, values] of line.matchAll(MATCHER)) {
        // With an empty alternative, the query finds series without the label, too: `=~"undefined|"`.
        if (!values.split('|').includes(''))
          found.push({ file, line: i + 1, text: text.replaceAll('\\', '') });
      }
    }
  }
  return found;
}

/**
 * @param {string[]} paths
 * @returns {Generator<string>}
 */
function* filesOf(paths) {
  for (const each of paths) {
    if (fs.statSync(each).isDirectory()) yield* filesIn(each);
    else yield each;
  }
}

/**
 * @param {string} directory
 * @returns {Generator<string>} without those of packages, and hidden ones
 */
function* filesIn(directory) {
  let entries;
  try {
    entries = fs.readdirSync(directory, { withFileTypes: true });
  } catch {
    return;
  }
  for (const entry of entries) {
    const file = path.join(directory, entry.name);
    if (entry.name === 'node_modules' || entry.name.startsWith('.')) continue;
    if (entry.isDirectory()) yield* filesIn(file);
    else if (entry.isFile() && /\.(json|ya?ml)$/i.test(entry.name)) yield file;
  }
}

/** @param {string} file */
function linesOf(file) {
  try {
    if (fs.statSync(file).size > MAX_BYTES) return [];
    return fs.readFileSync(file, 'utf8').split('\n');
  } catch {
    return [];
  }
}

module.exports = { findUndefinedLabels };
