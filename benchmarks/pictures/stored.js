'use strict';

// The pictures of docs/internals/ and the numbers that they show, which are stored beside this file. So a
// picture can be drawn again without measuring.

const fs = require('node:fs');
const path = require('node:path');
const prettier = require('prettier');
const { headlineSpec, roundsSpec } = require('../article/drawing.js');
const { growthSpec } = require('../cluster/growth-drawing.js');
const { dashboardSpec } = require('../dashboard/drawing.js');
const { quantilesSpec } = require('../native-histograms/drawing.js');
const { soakSpec } = require('../soak/drawing.js');
const { drawInto } = require('./chart.js');

const DOCUMENTS = path.join(__dirname, '..', '..', 'docs', 'internals');

/** By file of numbers: its pictures. */
const PICTURES = {
  article: { 'benchmark-headline': headlineSpec, 'benchmark-article': roundsSpec },
  growth: { 'benchmark-cluster-growth': growthSpec },
  workers: { 'benchmark-cluster-workers': growthSpec },
  soak: { soak: soakSpec },
  dashboard: { 'grafana-dashboard': dashboardSpec },
  quantiles: { 'native-quantiles': quantilesSpec },
};

/**
 * @param {string} [directory]
 * @returns {Promise<string[]>} the files written
 */
async function drawAll(directory = DOCUMENTS) {
  const files = [];
  for (const name of Object.keys(PICTURES)) files.push(...(await drawStored(name, directory)));
  return files;
}

async function drawStored(name, directory) {
  const numbers = JSON.parse(fs.readFileSync(fileOf(name), 'utf8'));
  const files = [];
  for (const [picture, specOf] of Object.entries(PICTURES[name])) {
    const specification = specOf(numbers);
    if (specification) files.push(...(await drawInto(path.join(directory, `${picture}.svg`), specification)));
  }
  return files;
}

/**
 * Stores new numbers, and draws them for docs/internals/.
 *
 * @param {string} name
 * @param {object} numbers
 * @returns {Promise<string[]>} the files written
 */
async function documentNumbers(name, numbers) {
  const file = fileOf(name);
  const style = await prettier.resolveConfig(file);
  fs.writeFileSync(file, await prettier.format(JSON.stringify(numbers), { ...style, parser: 'json' }));
  return [file, ...(await drawStored(name, DOCUMENTS))];
}

function fileOf(name) {
  return path.join(__dirname, `${name}.json`);
}

module.exports = { documentNumbers, drawAll };
