'use strict';

// docs/api.md and index.d.ts have the same names: exports, members of classes, options, members of types. The
// guides have the options and defaults of docs/api.md.

const assert = require('node:assert');
const fs = require('node:fs');
const path = require('node:path');
const { describe, it } = require('node:test');
const ts = require('typescript');
const client = require('../..');

const ROOT = path.join(__dirname, '../..');
const TYPES = path.join(ROOT, 'index.d.ts');
const DOCUMENT = fs.readFileSync(path.join(ROOT, 'docs/api.md'), 'utf8');

const program = ts.createProgram([TYPES], { lib: ['lib.es5.d.ts'], types: [] });
const checker = program.getTypeChecker();
const exported = exportsOf(TYPES);

/** By name: the symbols that a file of types exports. */
function exportsOf(file) {
  const symbols = checker.getExportsOfModule(checker.getSymbolAtLocation(program.getSourceFile(file)));
  return new Map(
    symbols.map(symbol => [
      symbol.name,
      symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol,
    ]),
  );
}

/**
 * Under these headings a table describes an options type. Options that a type inherits may stand elsewhere.
 */
const OPTIONS = {
  'Options of every metric': 'MetricConfiguration',
  Histogram: 'HistogramConfiguration',
  Summary: 'SummaryConfiguration',
  AggregatorRegistry: 'AggregatorRegistryOptions',
  WorkerRegistry: 'WorkerRegistryOptions',
  'Options of clusterMetrics': 'ClusterMetricsBytesOptions',
  metricsHandler: 'MetricsHandlerOptions',
  startMetricsServer: 'MetricsServerOptions',
  collectDefaultMetrics: 'DefaultMetricsCollectorConfiguration',
  RemoteWrite: 'RemoteWriteOptions',
};
const CLASSES = [
  ...['Counter', 'Gauge', 'Histogram', 'Summary', 'Registry'],
  ...['AggregatorRegistry', 'WorkerRegistry', 'Pushgateway', 'RemoteWrite'],
];

/** The guides with a table of options, and the heading of these options in docs/api.md. */
const GUIDES = {
  'docs/cluster.md': 'AggregatorRegistry',
  'docs/metrics-endpoint.md': 'metricsHandler',
  'docs/remote-write.md': 'RemoteWrite',
  'docs/default-metrics.md': 'collectDefaultMetrics',
};

/** The text below a heading. */
function sectionOf(heading) {
  const start = DOCUMENT.indexOf(`\n## ${heading}\n`);
  assert.notStrictEqual(start, -1, heading);
  const end = DOCUMENT.indexOf('\n## ', start + 1);
  return DOCUMENT.slice(start, end === -1 ? undefined : end);
}

/**
 * The rows of the tables of a text whose first column has this title.
 *
 * @returns {{name: string, cells: string[]}[]} name: the identifier that the first cell begins with
 */
function rowsIn(text, title) {
  const table = new RegExp(`^\\| ${title} +\\|.*\\n\\|[ |-]+\\n((?:\\|.*\\n)+)`, 'gm');
  return Array.from(text.matchAll(table), ([, rows]) => rows.trimEnd().split('\n'))
    .flat()
    .map(row => row.split(' | ').map(cell => cell.replace(/^\| | *\|$/g, '').trim()))
    .map(cells => ({ name: /^`([\w.]+)/.exec(cells[0])[1], cells }));
}

const rowsOf = (heading, title) => rowsIn(sectionOf(heading), title);
const namesOf = (heading, title) => rowsOf(heading, title).map(({ name }) => name);
const sorted = names => [...names].sort();

/**
 * Members that an interface, class or type has in index.d.ts, not those of the language. A union has none.
 */
function membersOf(symbol) {
  const type = checker.getDeclaredTypeOfSymbol(symbol);
  if (type.isUnion()) return [];
  return type
    .getProperties()
    .filter(member => member.declarations?.some(({ parent }) => parent.getSourceFile().fileName === TYPES))
    .map(({ name }) => name);
}

/** Members that a class or interface declares itself. */
function ownMembersOf(symbol) {
  return [...symbol.members.values()]
    .filter(({ flags }) => flags & (ts.SymbolFlags.Property | ts.SymbolFlags.Method))
    .map(({ name }) => name);
}

/** Members of a class without those of its superclass. */
function membersOfClass(symbol) {
  const type = checker.getDeclaredTypeOfSymbol(symbol);
  const superclasses = checker
    .getBaseTypes(type)
    .filter(({ symbol: { flags } }) => flags & ts.SymbolFlags.Class);
  const inherited = superclasses.flatMap(base => base.getProperties().map(({ name }) => name));
  return membersOf(symbol).filter(name => !inherited.includes(name));
}

function staticMembersOf(symbol) {
  return [...symbol.exports.values()]
    .filter(({ flags }) => flags & (ts.SymbolFlags.Property | ts.SymbolFlags.Method))
    .filter(({ name }) => name !== 'prototype')
    .map(({ name }) => `${symbol.name}.${name}`);
}

describe('docs/api.md', () => {
  it('docs/api.md names every export of index.d.ts', () => {
    for (const name of exported.keys()) {
      const isNamed = DOCUMENT.includes(`\n## ${name}\n`) || new RegExp(`\`${name}\\b`).test(DOCUMENT);
      assert.ok(isNamed, `${name} is not in docs/api.md`);
    }
  });

  it('docs/api.md has the functions and constants that the package exports, and no other', () => {
    const documented = namesOf('Functions and constants', 'name');
    assert.deepStrictEqual(sorted([...documented, ...CLASSES]), sorted(Object.keys(client)));
  });

  for (const name of CLASSES) {
    it(`docs/api.md has the members of ${name}, and no other`, () => {
      const symbol = exported.get(name);
      const declared = [...membersOfClass(symbol), ...staticMembersOf(symbol)];
      assert.deepStrictEqual(sorted(namesOf(name, 'member')), sorted(declared));
    });
  }

  for (const [heading, name] of Object.entries(OPTIONS)) {
    it(`docs/api.md has the options of ${name}, and no other`, () => {
      const common = ownMembersOf(exported.get('MetricConfiguration'));
      const options = membersOf(exported.get(name)).filter(
        option =>
          name === 'MetricConfiguration' || !/^(Histogram|Summary)/.test(name) || !common.includes(option),
      );
      assert.deepStrictEqual(sorted(namesOf(heading, 'option')), sorted(options));
    });
  }

  it('docs/api.md has the properties of ClusterState and collectDefaultMetrics, and no other', () => {
    assert.deepStrictEqual(
      sorted(namesOf('ClusterState', 'property')),
      sorted(membersOf(exported.get('ClusterState'))),
    );
    assert.deepStrictEqual(
      sorted(namesOf('collectDefaultMetrics', 'property')),
      sorted(Object.keys(client.collectDefaultMetrics).map(name => `collectDefaultMetrics.${name}`)),
    );
  });

  it('docs/api.md has each type with its members, and no other', () => {
    const rows = rowsOf('Types', 'type');
    const types = [...exported].flatMap(([name, symbol]) => {
      const nested = [...(symbol.exports?.values() ?? [])]
        .filter(({ flags }) => flags & ts.SymbolFlags.Interface)
        .map(inner => [`${name}.${inner.name}`, inner]);
      const isType = symbol.flags & (ts.SymbolFlags.Interface | ts.SymbolFlags.TypeAlias);
      return isType ? [[name, symbol], ...nested] : nested;
    });
    const elsewhere = [
      ...CLASSES,
      ...Object.values(OPTIONS),
      'ClusterState',
      'ClusterMetricsOptions',
      'CounterConfiguration',
      'GaugeConfiguration',
    ];
    assert.deepStrictEqual(
      sorted(rows.map(({ name }) => name)),
      sorted(types.map(([name]) => name).filter(name => !elsewhere.includes(name))),
    );
    const byName = new Map(types);
    for (const { name, cells } of rows) {
      const documented = Array.from(cells[1].matchAll(/`(\w+)`/g), ([, member]) => member);
      assert.deepStrictEqual(sorted(documented), sorted(membersOf(byName.get(name))), name);
    }
  });

  it('docs/api.md has the functions of prom-client/testing, and no other', () => {
    const documented = namesOf('prom-client/testing', 'function');
    assert.deepStrictEqual(sorted(documented), sorted(Object.keys(require('../../lib/testing/testing'))));
  });
});

describe('the options in the guides', () => {
  /** By name of the option: the cell of the column `default`. */
  function defaultsIn(text) {
    const column =
      /^\| option +\|.*/m
        .exec(text)[0]
        .split('|')
        .findIndex(cell => cell.trim() === 'default') - 1;
    return Object.fromEntries(rowsIn(text, 'option').map(({ name, cells }) => [name, cells[column]]));
  }

  for (const [guide, heading] of Object.entries(GUIDES)) {
    it(`${guide} has the options and defaults of docs/api.md`, () => {
      const text = fs.readFileSync(path.join(ROOT, guide), 'utf8');
      assert.deepEqual(defaultsIn(text), defaultsIn(sectionOf(heading)));
    });
  }
});
