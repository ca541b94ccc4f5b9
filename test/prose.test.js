'use strict';

// Lines of documents and comments are at most 110 columns long (Prettier wraps neither), and lack some
// phrases that are not English.

const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const { it } = require('node:test');

const ROOT = path.join(__dirname, '..');
const COLUMNS = 110;
const FOLDERS = ['.ci', 'benchmarks', 'docs', 'example', 'lib', 'scripts', 'test'];
const TEXT = /\.(md|[cm]?[jt]s|ya?ml)$|^\.ci\/run$/;
const NOT_OURS = /(^|\/)node_modules\/|^benchmarks\/results\//;

/** @returns {string[]} paths of all documents and programs, from the root */
function files() {
  const inFolder = folder =>
    fs.existsSync(path.join(ROOT, folder))
      ? fs
          .readdirSync(path.join(ROOT, folder), { recursive: true })
          .map(name => path.join(folder, String(name)))
      : [];
  return [...fs.readdirSync(ROOT), ...FOLDERS.flatMap(inFolder)]
    .map(file => file.replaceAll(path.sep, '/'))
    .filter(file => TEXT.test(file) && !NOT_OURS.test(file));
}

/**
 * @param {string} text
 * @returns {boolean[]} by line: whether it is prose, and no part of a table, of a block of code or an image
 */
function proseOfDocument(text) {
  let isCode = false;
  return text.split('\n').map(line => {
    const isFence = /^\s*```/.test(line);
    if (isFence) isCode = !isCode;
    return !isFence && !isCode && !/^(\s*\||!\[| {4})/.test(line);
  });
}

/**
 * @param {string} text
 * @returns {boolean[]} by line: whether it is a comment, and not the type of the expression that follows
 */
function commentsOf(text) {
  return text.split('\n').map(line => /^\s*(\/\/|\/?\*|#)/.test(line) && !/\*\/ \($/.test(line));
}

/** What is written instead: even if; joins; anything but; is not a …; none of this; what it means. */
const NOT_ENGLISH =
  /\balso if\b|\btakes? (no )?part\b|\bsomething else than\b|\bwhat it tells\b|\bnothing of this (?!thread|process)|(?<!there )\b(is|are) no (number|object|array|string|text|URL|label)s?\b/i;

it('documents, comments and titles of tests lack phrases that are not English', () => {
  const found = files().flatMap(file =>
    file.endsWith('prose.test.js')
      ? []
      : fs
          .readFileSync(path.join(ROOT, file), 'utf8')
          .split('\n')
          .flatMap((line, i) => {
            const [phrase] = NOT_ENGLISH.exec(line) ?? [];
            return phrase === undefined ? [] : [`${file}:${i + 1}: ${phrase}`];
          }),
  );
  assert.deepEqual(found, []);
});

it(`lines of prose and comments have at most ${COLUMNS} columns`, () => {
  const long = files().flatMap(file => {
    const text = fs.readFileSync(path.join(ROOT, file), 'utf8');
    const isProse = file.endsWith('.md') ? proseOfDocument(text) : commentsOf(text);
    return text
      .split('\n')
      .flatMap((line, i) =>
        isProse[i] && line.length > COLUMNS ? [`${file}:${i + 1}: ${line.length}`] : [],
      );
  });
  assert.deepEqual(long, []);
});
