'use strict';

// Each snippet of types/snippets.ts that compiles with the types of prom-client 15.1.3 compiles with ours,
// whatever the compiler's options are.

const assert = require('node:assert/strict');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { after, before, describe, it } = require('node:test');
const ts = require('typescript');
const { Compilation } = require('./fixtures/compilation');
const { SNIPPETS, writeSnippets, snippetName } = require('./fixtures/type-snippets');

const { ModuleKind, ModuleResolutionKind, ScriptTarget } = ts;
const NODENEXT = { module: ModuleKind.NodeNext, moduleResolution: ModuleResolutionKind.NodeNext };
const COMMONJS = { module: ModuleKind.CommonJS, moduleResolution: ModuleResolutionKind.Node10 };
const BUNDLER = { module: ModuleKind.ESNext, moduleResolution: ModuleResolutionKind.Bundler };

/** `extension`: of the snippets; `types`: of which packages there are global types. */
const CONFIGURATIONS = {
  'strict, nodenext, CommonJS': { options: { ...NODENEXT, strict: true, esModuleInterop: true } },
  'strict, nodenext, ES modules': { options: { ...NODENEXT, strict: true }, extension: 'mts' },
  'not strict, commonjs, without esModuleInterop': { options: { ...COMMONJS, strict: false } },
  'strict, commonjs, types of Node.js': {
    options: { ...COMMONJS, strict: true, esModuleInterop: true },
    types: ['node'],
  },
  'strict, bundler, isolated modules': { options: { ...BUNDLER, strict: true, isolatedModules: true } },
  'as strict as can be, with the newest library': {
    options: {
      ...BUNDLER,
      strict: true,
      exactOptionalPropertyTypes: true,
      noImplicitOverride: true,
      noImplicitReturns: true,
      noPropertyAccessFromIndexSignature: true,
      noUncheckedIndexedAccess: true,
      target: ScriptTarget.ESNext,
      lib: ['lib.esnext.d.ts', 'lib.dom.d.ts'],
    },
  },
  'ES5 with the library of ES2015': {
    options: {
      ...COMMONJS,
      strict: true,
      esModuleInterop: true,
      experimentalDecorators: true,
      target: ScriptTarget.ES5,
      lib: ['lib.es2015.d.ts'],
    },
  },
};

/** @type {string} */
let place;

before(() => {
  place = fs.mkdtempSync(path.join(fs.realpathSync(os.tmpdir()), 'type-snippets-test-'));
  writeSnippets(place, ['ts', 'mts']);
});

after(() => fs.rmSync(place, { recursive: true, force: true }));

/**
 * @param {'theirs' | 'ours'} library
 * @param {{options: ts.CompilerOptions, extension?: string, types?: string[]}} configuration
 * @returns {{compilation: Compilation, errors: string[][]}} by snippet
 */
function compile(library, { options, extension = 'ts', types = [] }) {
  const files = SNIPPETS.map((_, i) => snippetName(i, extension));
  const compilation = new Compilation(() => path.join(place, library), files, {
    target: ScriptTarget.ES2022,
    lib: ['lib.es2022.d.ts'],
    declaration: true,
    skipLibCheck: false,
    ...options,
    types,
  });
  return { compilation, errors: files.map(file => compilation.errors(file)) };
}

describe('programs that compile with the types of prom-client 15.1.3 in seven configurations', () => {
  /** @type {Set<number>} */
  const compiled = new Set();

  for (const [name, configuration] of Object.entries(CONFIGURATIONS)) {
    it(`each snippet that compiles with prom-client's types compiles with ours: ${name}`, () => {
      const theirs = compile('theirs', configuration);
      const ours = compile('ours', configuration);
      const compiling = SNIPPETS.map((_, i) => i).filter(i => theirs.errors[i].length === 0);
      const failing = compiling.filter(i => ours.errors[i].length > 0);
      const shown = failing.map(i => [SNIPPETS[i].title, ours.errors[i]]);
      assert.deepEqual(shown, []);
      assert.deepEqual(ours.compilation.errorsElsewhere(), []);
      assert.ok(compiling.length >= 50, `${compiling.length} compile with prom-client's types`);
      for (const i of compiling) compiled.add(i);
    });
  }

  it('each snippet compiles with the types of prom-client in one configuration or more', () => {
    const others = SNIPPETS.filter((_, i) => !compiled.has(i));
    const titles = others.map(({ title }) => title);
    assert.deepEqual(titles, []);
  });
});
