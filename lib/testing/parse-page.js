'use strict';

// Reads a page in the Prometheus text format or in OpenMetrics.

/**
 * @typedef {object} Sample
 * @property {string} name
 * @property {Record<string, string>} labels
 * @property {number} value
 */

/**
 * @typedef {object} Family
 * @property {string} name as a registry has it: in OpenMetrics, the counter of `# TYPE a counter` is
 *   `a_total`
 * @property {string} type 'untyped' without a TYPE line
 * @property {string | undefined} help undefined without a HELP line
 * @property {Sample[]} samples
 */

const NAME = /^[a-zA-Z_:][a-zA-Z0-9_:]*/;
const LABEL = /\s*([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"\s*,?\s*/y;
const SUFFIXES = ['', '_bucket', '_sum', '_count', '_total', '_created'];

/**
 * @param {string} text lines may be indented
 * @param {(sampleName: string) => string} [familyNameOf] of a sample that follows no HELP or TYPE of its
 *   family
 * @returns {Family[]} in order of the page
 * @throws {SyntaxError} for a line that is neither a comment nor a sample
 */
function parsePage(text, familyNameOf = name => name) {
  const lines = text
    .split('\n')
    .map(line => line.trim())
    .filter(line => line !== '');
  const isOpenMetrics = lines.at(-1) === '# EOF';
  /** @type {Map<string, Family>} */
  const families = new Map();
  /** @type {Family | undefined} */
  let current;
  const familyOf = (/** @type {string} */ name) => {
    const family = families.get(name) ?? { name, type: 'untyped', help: undefined, samples: [] };
    families.set(name, family);
    return family;
  };
  for (const line of lines) {
    const [, keyword, name, rest] = /^#\s+(HELP|TYPE)\s+(\S+)\s*(.*)$/.exec(line) ?? [];
    if (keyword !== undefined) {
      current = familyOf(name);
      if (keyword === 'TYPE') current.type = rest;
      else current.help = unescaped(rest);
    } else if (!line.startsWith('#')) {
      const sample = sampleOf(line);
      if (current === undefined || !belongsTo(current, sample)) current = familyOf(familyNameOf(sample.name));
      current.samples.push(sample);
    }
  }
  return [...families.values()].map(family => {
    const isBare = isOpenMetrics && family.type === 'counter';
    return isBare ? { ...family, name: `${family.name}_total` } : family;
  });
}

/**
 * @param {Family} family
 * @param {Sample} sample
 */
function belongsTo(family, sample) {
  return SUFFIXES.some(suffix => sample.name === family.name + suffix);
}

/**
 * @param {string} line
 * @returns {Sample}
 */
function sampleOf(line) {
  const name = NAME.exec(line)?.[0];
  if (name === undefined) throw new SyntaxError(`This line is not a sample: ${line}`);
  let at = name.length;
  /** @type {Record<string, string>} */
  const labels = {};
  if (line[at] === '{') {
    at++;
    for (;;) {
      LABEL.lastIndex = at;
      const label = LABEL.exec(line);
      if (label === null) break;
      Object.defineProperty(labels, label[1], { value: unescaped(label[2]), enumerable: true });
      at = LABEL.lastIndex;
    }
    if (line[at++] !== '}') throw new SyntaxError(`The labels of this line cannot be read: ${line}`);
  }
  // A time stamp or an exemplar may follow.
  const [text] = line.slice(at).trim().split(/\s/);
  const value = numberOf(text);
  if (text === '' || (Number.isNaN(value) && !/^nan$/i.test(text)))
    throw new SyntaxError(`This line has no value: ${line}`);
  return { name, labels, value };
}

/** @param {string} text */
function unescaped(text) {
  return text.replace(/\\(.)/g, (_, character) => (character === 'n' ? '\n' : character));
}

/** @param {string} text */
function numberOf(text) {
  if (/^[+-]?inf$/i.test(text)) return text.startsWith('-') ? -Infinity : Infinity;
  return Number(text);
}

module.exports = { parsePage };
