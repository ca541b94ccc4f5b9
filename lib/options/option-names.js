'use strict';

// Misspelt options. prom-client ignores options that it does not have, and applications pass others along
// with theirs, so only a near miss of an existing name is reported.

const { isProduction } = require('./environment');
const { adviseOnce } = require('./warnings');

/** Short names differ in few characters, so fewer edits are allowed. */
const SHORT_NAME = 5;
const MAX_EDITS = 2;
const MAX_EDITS_OF_SHORT_NAME = 1;

/**
 * Reports options that are misspelt, each name once.
 *
 * @param {string} owner of the options, as the program names it
 * @param {unknown} options
 * @param {ReadonlySet<string>} known names of the options that exist
 * @param {boolean} [reportsAll] also those that resemble no known one
 */
function checkOptionNames(owner, options, known, reportsAll) {
  if (typeof options !== 'object' || options === null) return;
  for (const name of Object.keys(options))
    if (!known.has(name)) reportIfMisspelt(owner, name, known, reportsAll);
}

/**
 * @param {string} owner of the options, as the program names it
 * @param {string} name that is not among the known ones
 * @param {ReadonlySet<string>} known
 * @param {boolean} [reportsAll]
 */
function reportIfMisspelt(owner, name, known, reportsAll = false) {
  if (isProduction()) return;
  const meant = nearest(name, known);
  if (meant === undefined && !reportsAll) return;
  const advice = meant === undefined ? '' : `: did you mean \`${meant}\`?`;
  adviseOnce(`option ${name}`, `${owner} has no option \`${name}\`${advice}`);
}

/**
 * @param {string} name
 * @param {Iterable<string>} known
 * @returns {string | undefined} the known name that was probably meant
 */
function nearest(name, known) {
  const given = plain(name);
  const maxEdits = given.length <= SHORT_NAME ? MAX_EDITS_OF_SHORT_NAME : MAX_EDITS;
  let best;
  let fewest = maxEdits + 1;
  for (const candidate of known) {
    const edits = isBeginning(given, plain(candidate)) ? 1 : editDistance(given, plain(candidate));
    if (edits < fewest) [best, fewest] = [candidate, edits];
  }
  return best;
}

/**
 * `labels` or `label` for `labelNames`, `maxAge` for `maxAgeSeconds`.
 *
 * @param {string} given
 * @param {string} candidate
 */
function isBeginning(given, candidate) {
  return given.length >= SHORT_NAME && candidate.startsWith(given.replace(/s$/, ''));
}

/** @param {string} name `label_names`, `label-names` and `LabelNames` are spellings of one name */
function plain(name) {
  return name.replaceAll(/[-_]/g, '').toLowerCase();
}

/**
 * How many characters must be inserted, removed or replaced to get from one text to the other
 * (Levenshtein).
 *
 * @param {string} from
 * @param {string} to
 * @returns {number}
 */
function editDistance(from, to) {
  let above = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (let row = 1; row <= from.length; row++) {
    const current = [row];
    for (let column = 1; column <= to.length; column++) {
      const replaced = above[column - 1] + (from[row - 1] === to[column - 1] ? 0 : 1);
      current.push(Math.min(replaced, above[column] + 1, current[column - 1] + 1));
    }
    above = current;
  }
  return above[to.length];
}

module.exports = { checkOptionNames, reportIfMisspelt };
