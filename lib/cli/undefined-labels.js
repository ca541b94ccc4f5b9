'use strict';

// Finds queries of dashboards and rules that select `label="undefined"`. The page of one process shows that
// for a label without a value; on the pages of a cluster, a group and threads, the label is missing.

const fs = require('node:fs');
const path = require('node:path');
const { listed } = require('./installed-copies');

const MATCHER = /[A-Za-z_]\w*\s*(?:!=|=~|!~|=)\s*\\*["']((?:[^"'\\]*\|)?undefined(?:\|[^"'\\]*)?)\\*["']/g;

/**
 * @param {string[]} paths files, or directories with JSON and YAML files
 * @returns {{file: string, line: number, text: string}[]}
 * @throws {Error} if one of the paths does not exist
 */
function findUndefinedLabels(paths) {
  const found = [];
  const files = paths.flatMap(each => (fs.statSync(each).isDirectory() ? filesIn(each) : each));
  for (const file of files) {
    for (const [i, line] of fs.readFileSync(file, 'utf8').split('\n').entries()) {
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
 * @param {string} directory
 * @returns {string[]} without those of packages, and hidden ones
 */
function filesIn(directory) {
  return listed(directory).flatMap(entry => {
    const file = path.join(directory, entry.name);
    if (entry.name === 'node_modules' || entry.name.startsWith('.')) return [];
    if (entry.isDirectory()) return filesIn(file);
    return entry.isFile() && /\.(json|ya?ml)$/i.test(entry.name) ? [file] : [];
  });
}

module.exports = { findUndefinedLabels };
