'use strict';

const { OPERATIONS } = require('../concurrency/tasks');
const { mebibytes, milliseconds, percent } = require('../concurrency/text-table');

/** @typedef {import('./setting-figures').SettingFigures} SettingFigures */

// Share of all time. A smaller gain is not worth the memory of a larger new space.
const WITHIN = 0.02;

/**
 * The smallest setting whose share of garbage collection is close to the best.
 *
 * @param {SettingFigures[]} settings at least one
 * @returns {SettingFigures}
 */
function choiceOf(settings) {
  const best = bestOf(settings);
  return bySize(settings).find(({ share }) => share <= best.share + WITHIN);
}

/**
 * @param {SettingFigures[]} settings at least one
 * @returns {string} which setting to choose, and why
 */
function choiceText(settings) {
  const choice = choiceOf(settings);
  const sentences = [recommendation(choice, settings), comparison(choice, baselineOf(choice, settings))];
  return [...sentences, reservation(settings)].filter(Boolean).join('\n');
}

function recommendation(choice, settings) {
  const best = bestOf(settings);
  const advice =
    choice.size === 'default' ? `Leave it as it is: ${nameOf(choice)}` : `Choose ${nameOf(choice)}: it`;
  const place =
    choice === best
      ? 'the least of all'
      : `within ${WITHIN * 100} points of the best (${percent(best.share)} with ${nameOf(best)})`;
  return `${advice} spends ${percent(choice.share)} of the time on garbage collection, ${place}, and no smaller one does.`;
}

/** Node's own setting, or, if that is the choice, the largest setting that was tried. */
function baselineOf(choice, settings) {
  const sorted = bySize(settings);
  if (choice.size === 'default') return sorted.at(-1);
  return settings.find(({ size }) => size === 'default') ?? sorted[0];
}

function comparison(choice, other) {
  if (other === choice) return undefined;
  const slowest = Object.keys(OPERATIONS).at(-1);
  const memory = Math.round((choice.residentMemory - other.residentMemory) / 2 ** 20);
  const [before, after] = [other, choice].map(figures => milliseconds(figures.p99(slowest)));
  return (
    `${sentenceCase(nameOf(other))} spends ${percent(other.share)}; against that, the choice takes ` +
    `${Math.abs(memory)} MiB ${memory < 0 ? 'less' : 'more'} of memory a process, and its P99 of ${slowest} is ` +
    `${after} ms instead of ${before} ms.`
  );
}

/** If one setting differs between rounds, differences between settings may be noise. */
function reservation(settings) {
  const spread = Math.max(...settings.map(({ shares }) => Math.max(...shares) - Math.min(...shares)));
  if (spread <= WITHIN) return undefined;
  return (
    `Mind that one setting differed by ${(spread * 100).toFixed(1)} points between its rounds: ` +
    'measure longer, or on a quieter machine, before you rely on this.'
  );
}

function bestOf(settings) {
  return settings.reduce((best, figures) => (figures.share < best.share ? figures : best));
}

/** The smallest first; of two equal ones, the one that needs no option. */
function bySize(settings) {
  const rank = ({ size }) => (size === 'default' ? 0 : 1);
  return settings.toSorted((a, b) => a.semiSpace - b.semiSpace || rank(a) - rank(b));
}

function nameOf({ size, semiSpace }) {
  if (size !== 'default') return `--max-semi-space-size=${size}`;
  return `Node's own setting (a semi-space of ${mebibytes(semiSpace)} MiB here)`;
}

function sentenceCase(text) {
  return text[0].toUpperCase() + text.slice(1);
}

module.exports = { choiceOf, choiceText };
