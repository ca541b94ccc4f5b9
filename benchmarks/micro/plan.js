'use strict';

// The measurements, their order, and how often each is repeated.

const fs = require('node:fs');
const path = require('node:path');
const { CLIENTS, OURS } = require('../shared/clients.js');
const { floorsOf } = require('../shared/floors.js');
const { budgetOfGate } = require('./budgets.js');

const SUBJECTS = path.join(__dirname, 'subjects');

// In the order of the document; a subject that is missing here comes last.
const ORDER = [
  'inc',
  'inc-labels',
  'bound-children',
  'set',
  'observe',
  'start-timer',
  'summary-observe',
  'idle-series',
  'new-series',
  'metrics-text',
  'metrics-json',
  'thousand-summaries',
  'exemplars',
  'aggregate',
  'snapshot',
  'require-time',
  'memory',
];

const SECONDS = { short: 0.2, full: 0.6 }; // of measuring in one process
const REPETITIONS = 3;
// Cases of this library alone are judged by the lowest of several processes: one undisturbed process is
// enough.
const REPETITIONS_ALONE = 5;
const ELSEWHERE = 0.6; // seconds that a process takes beyond measuring, an estimate

/**
 * @typedef {object} Case
 * @property {string} key
 * @property {string} title
 * @property {Record<string, string>} figures what `measure` resolves to, and the unit of each; less is better
 * @property {string[]} [clients] that can be measured; default: all
 * @property {number} [seconds] rough guess of what one process takes, for the progress report; default: what
 *   is needed for the time to measure
 * @property {(process: {client: string, library: any, seconds: number}) => Promise<Record<string, number>>}
 *   measure in a process of its own. `library` is loaded when it is first looked at
 */

/**
 * @typedef {object} Subject one file in `subjects/`
 * @property {string} title
 * @property {string} [note] how its cases are measured
 * @property {Case[]} cases
 */

/**
 * @typedef {object} Step one case of one subject
 * @property {string} id `subject/case`
 * @property {string} title for the progress report
 * @property {number} seconds rough guess, for the progress report
 * @property {string[]} clients
 * @property {number} repetitions
 * @property {number} secondsOfProcess seconds of measuring per process
 * @property {Record<string, string>} figures
 */

/** @returns {string[]} names of the subjects' files, without their ending */
function subjectNames() {
  const names = fs.readdirSync(SUBJECTS).map(file => path.basename(file, '.js'));
  const placeOf = name => (ORDER.includes(name) ? ORDER.indexOf(name) : ORDER.length);
  return names.sort((a, b) => placeOf(a) - placeOf(b));
}

/**
 * @param {string} name of its file
 * @returns {Subject}
 */
function subjectNamed(name) {
  return require(path.join(SUBJECTS, `${name}.js`));
}

/**
 * @param {string} id `subject/case`
 * @returns {Case}
 */
function caseOf(id) {
  const [name, key] = id.split('/');
  const found = subjectNamed(name).cases.find(candidate => candidate.key === key);
  if (!found) throw new Error(`there is no case ${id}`);
  return found;
}

/**
 * @param {{short: boolean, only?: string[], clients?: string[], repetitions?: number, seconds?: number}}
 *   options `only`: beginnings of ids
 * @returns {Step[]}
 */
function planFor({ short, only, clients, repetitions, seconds }) {
  const secondsOfProcess = seconds ?? (short ? SECONDS.short : SECONDS.full);
  const gated = short ? clientsOfGates() : undefined;
  const steps = [];
  for (const name of subjectNames()) {
    for (const each of subjectNamed(name).cases) {
      const id = `${name}/${each.key}`;
      if (only && !only.some(beginning => id.startsWith(beginning))) continue;
      const able = each.clients ?? CLIENTS.map(({ key }) => key);
      const wanted = gated ? (gated.get(id) ?? []) : able;
      const measured = wanted.filter(client => clients?.includes(client) ?? true);
      if (measured.length === 0) continue;
      const times = repetitions ?? (gated && measured.length === 1 ? REPETITIONS_ALONE : REPETITIONS);
      const secondsOfOne = each.seconds ?? secondsOfProcess * Object.keys(each.figures).length + ELSEWHERE;
      steps.push({
        id,
        title: `${subjectNamed(name).title}: ${each.title}`,
        seconds: secondsOfOne * measured.length * times,
        clients: measured,
        repetitions: times,
        secondsOfProcess,
        figures: each.figures,
      });
    }
  }
  return steps;
}

/** The cases and clients that the floors need. */
function clientsOfGates() {
  /** @type {Map<string, string[]>} */
  const clients = new Map();
  for (const { gate } of floorsOf('micro')) {
    const { id, against } = budgetOfGate(gate);
    const needed = new Set([...(clients.get(id) ?? []), OURS, ...(against ? [against] : [])]);
    clients.set(id, [...needed]);
  }
  return clients;
}

module.exports = { planFor, subjectNames, subjectNamed, caseOf };
