'use strict';

// Results as Markdown tables that also line up in a terminal.

const { CLIENTS, OURS, clientNamed } = require('../shared/clients.js');
const { summarise } = require('../shared/statistics.js');
const { number, table } = require('../shared/table.js');
const { ratioOf, valuesOf } = require('./budgets.js');
const { caseOf } = require('./plan.js');

/** @typedef {import('./budgets.js').Outcome} Outcome */

const RIVALS = CLIENTS.filter(({ key }) => key !== OURS);
const COLUMNS = [clientNamed(OURS), ...RIVALS];

/**
 * @param {Outcome[]} outcomes of one subject
 * @returns {string}
 */
function subjectTable(outcomes) {
  const head = ['median (least–most)', 'unit', ...COLUMNS.map(({ title }) => title)];
  head.push(...RIVALS.map(({ title }) => `${title} / ours`));
  const rows = outcomes.flatMap(outcome =>
    Object.keys(outcome.figures).map(figure => rowOf(outcome, figure)),
  );
  return table(head, rows);
}

function rowOf(outcome, figure) {
  const { title, figures } = outcome;
  const isOnlyFigure = Object.keys(figures).length === 1;
  return [
    isOnlyFigure ? title : `${title}: ${figure}`,
    figures[figure],
    ...COLUMNS.map(({ key }) => cell(valuesOf(outcome, key, figure))),
    ...RIVALS.map(({ key }) => times(ratioOf(outcome, figure, key))),
  ];
}

function cell(values) {
  if (values.length === 0) return '–';
  const { median, min, max } = summarise(values);
  const [shown, least, most] = [median, min, max].map(number);
  return least === most ? shown : `${shown} (${least}–${most})`;
}

function times(ratio) {
  return ratio === null ? '–' : `${number(ratio)}x`;
}

/**
 * Explains missing figures.
 *
 * @param {Outcome[]} outcomes
 * @returns {string[]} lines
 */
function errorLines(outcomes) {
  return outcomes.flatMap(({ title, errors }) =>
    Object.entries(errors).map(
      ([client, error]) => `- ${clientNamed(client).title} could not run “${title}”: ${error}`,
    ),
  );
}

/**
 * @param {import('./budgets.js').Verdict[]} verdicts
 * @param {{gates: boolean}} options whether floors are shown, too
 * @returns {string}
 */
function budgetTable(verdicts, { gates }) {
  const head = ['case and figure', 'against', 'measured', 'budget', 'verdict'];
  if (gates) head.push('floor');
  const rows = verdicts.map(({ budget, value, holds, gate }) => {
    const { id, figure, against } = budget;
    const rival = against ? clientNamed(against).title : '';
    const verdict = holds === null ? '–' : holds ? 'pass' : 'MISSED';
    const row = [`${id} ${figure}`, rival, measuredText(budget, value), limitText(budget, budget), verdict];
    return gates ? [...row, gate ? gateText(budget, gate) : 'none'] : row;
  });
  return table(head, rows);
}

function measuredText(budget, value) {
  return value === null ? 'not measured' : `${number(value)}${unitOf(budget)}`;
}

function gateText(budget, { floor, value, holds }) {
  return `${measuredText(budget, value)}, ${limitText(budget, floor)}: ${holds ? 'pass' : 'FAIL'}`;
}

/** @param {{atLeast?: number, atMost?: number}} limit of the budget, or the floor's */
function limitText(budget, { atLeast, atMost }) {
  const side = atMost === undefined ? 'at least' : 'at most';
  return `${side} ${number(atLeast ?? atMost)}${unitOf(budget)}`;
}

function unitOf({ id, figure, against }) {
  return against ? 'x less' : ` ${caseOf(id).figures[figure]}`;
}

module.exports = { subjectTable, errorLines, budgetTable, unitOf };
