'use strict';

// Compiles programs against index.d.ts, as an application would: from a directory in which the package is
// installed.

const assert = require('node:assert');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { describe, it, before, after } = require('node:test');
const ts = require('typescript');
const client = require('../..');
const { codeBlocks } = require('../docs/fixtures/code-blocks');
const { Compilation } = require('./fixtures/compilation');

const ROOT = path.join(__dirname, '../..');
const PROGRAMS = path.join(__dirname, 'types');

/** @type {ts.CompilerOptions} */
const STRICT = {
  strict: true,
  noEmit: true,
  declaration: true,
  noImplicitOverride: true,
  esModuleInterop: true,
  allowJs: true,
  checkJs: true,
  maxNodeModuleJsDepth: 0,
  target: ts.ScriptTarget.ES2022,
  lib: ['lib.es2023.d.ts'],
  types: ['node'],
};
const NODE16 = { module: ts.ModuleKind.Node16, moduleResolution: ts.ModuleResolutionKind.Node16 };
const NODE10 = { module: ts.ModuleKind.CommonJS, moduleResolution: ts.ModuleResolutionKind.Node10 };

const OURS = ['every-export.ts', 'additions.ts', 'deep-imports.cts'].map(name => `ours/${name}`);

const SNIPPETS = codeBlocks().map(({ name, code }, i) => ({
  title: name,
  name: `readme/snippet-${i + 1}.${/^import /m.test(code) ? 'mjs' : 'cjs'}`,
  code,
}));

/** @type {string} */
let place;

before(() => {
  place = fs.mkdtempSync(path.join(fs.realpathSync(os.tmpdir()), 'types-test-'));
  fs.cpSync(path.join(PROGRAMS, 'ours'), path.join(place, 'ours'), { recursive: true });
  fs.copyFileSync(path.join(place, 'ours/deep-imports.cts'), path.join(place, 'ours/deep-imports.ts'));
  const modules = path.join(place, 'node_modules');
  fs.mkdirSync(modules);
  fs.symlinkSync(ROOT, path.join(modules, 'prom-client'), 'junction');
  for (const dependency of ['@types', 'express', 'fastify']) {
    fs.symlinkSync(path.join(ROOT, 'node_modules', dependency), path.join(modules, dependency), 'junction');
  }
  fs.mkdirSync(path.join(place, 'readme'));
  for (const { name, code } of SNIPPETS) {
    // The types of Node.js have the cluster module as a default export only, which it is for ES modules.
    const source = code.replace(
      "const cluster = require('node:cluster');",
      "import cluster from 'node:cluster';",
    );
    fs.writeFileSync(path.join(place, name), source);
  }
});

after(() => fs.rmSync(place, { recursive: true, force: true }));

const compilationOf = (files, options) => new Compilation(() => place, files, { ...STRICT, ...options });
const withOurs = compilationOf([...OURS, ...SNIPPETS.map(({ name }) => name)], NODE16);

describe('our own types', () => {
  it('index.d.ts compiles', () => {
    assert.deepStrictEqual(withOurs.errorsElsewhere(), []);
  });

  for (const file of OURS) {
    it(`${file} compiles`, () => assert.deepStrictEqual(withOurs.errors(file), []));
  }

  it('a program can name an aggregator of its own', () => {
    const file = 'ours/own-aggregator.ts';
    assert.deepStrictEqual(compilationOf([file], NODE16).errors(file), []);
  });

  it('index.d.ts compiles without the types of Node.js', () => {
    const file = 'ours/without-node-types.ts';
    const compilation = compilationOf([file], { ...NODE16, types: [] });
    assert.deepStrictEqual(compilation.errors(file), []);
    assert.deepStrictEqual(compilation.errorsElsewhere(), []);
  });

  it('deep imports compile with module resolution `node10`, which ignores the exports map', () => {
    const file = 'ours/deep-imports.ts';
    const old = compilationOf([file], NODE10);
    assert.deepStrictEqual([...old.errors(file), ...old.errorsElsewhere()], []);
  });

  it('a program uses each exported type', () => {
    const files = ['ours/every-export.ts', 'ours/additions.ts', 'snippets.ts'];
    const programs = files.map(name => fs.readFileSync(path.join(PROGRAMS, name), 'utf8'));
    // Not only its import.
    const used = programs.map(text => text.replaceAll(/^import [^;]*;$/gm, '')).join('\n');
    const names = [...exportedSymbols().keys()];
    assert.ok(names.length > 50);
    const shown = names.filter(name => !new RegExp(`\\b${name}\\b`).test(used));
    assert.deepStrictEqual(shown, []);
  });

  for (const name of [
    'Registry',
    'AggregatorRegistry',
    'Counter',
    'Gauge',
    'Histogram',
    'Summary',
    'Pushgateway',
  ]) {
    it(`index.d.ts declares exactly the methods of ${name}`, () => {
      const checker = withOurs.program.getTypeChecker();
      const declared = checker.getDeclaredTypeOfSymbol(exportedSymbols().get(name)).getProperties();
      assert.deepStrictEqual(declared.map(member => member.name).sort(), publicMembers(client[name]));
    });
  }
});

/** @returns {Map<string, ts.Symbol>} what index.d.ts exports */
function exportedSymbols() {
  const checker = withOurs.program.getTypeChecker();
  const module = checker.getSymbolAtLocation(withOurs.program.getSourceFile(path.join(ROOT, 'index.d.ts')));
  return new Map(
    checker
      .getExportsOfModule(module)
      .map(symbol => [
        symbol.name,
        symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol,
      ]),
  );
}

/**
 * The members of a class, inherited ones included, without internal ones and those that exist for
 * compatibility only.
 */
function publicMembers(constructor) {
  const names = new Set();
  for (let { prototype } = constructor; prototype !== Object.prototype;) {
    for (const name of Object.getOwnPropertyNames(prototype)) names.add(name);
    prototype = Object.getPrototypeOf(prototype);
  }
  for (const name of ['constructor', 'hashMap', '_getValue', '_metrics', '_defaultLabels'])
    names.delete(name);
  // Its constructor assigns it.
  if (constructor === client.AggregatorRegistry) names.add('timeout');
  return [...names].sort();
}

describe('the code of README.md and docs/', () => {
  it('the documents have code blocks', () => assert.ok(SNIPPETS.length > 15));

  for (const { title, name } of SNIPPETS) {
    it(`"${title}" compiles`, () => assert.deepStrictEqual(withOurs.errors(name), []));
  }
});
