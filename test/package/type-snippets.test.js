'use strict';

// Each snippet of types/snippets.ts that compiles with the types of prom-client 15.1.3 compiles with ours,
// whatever the compiler's options are.

const assert = require('node:assert/strict');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { after, before, describe, it } = require('node:test');
const ts = require('typescript');
const { LIBRARIES, SNIPPETS, writeSnippets, snippetName } = require('./fixtures/type-snippets');

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

/** @type {Map<string, ts.SourceFile>} the compiler's own libraries, parsed once */
const libraryFiles = new Map();

/** @param {ts.CompilerOptions} options */
function hostOf(options) {
  const host = ts.createCompilerHost(options);
  const { getSourceFile } = host;
  const folder = path.dirname(ts.getDefaultLibFilePath(options));
  host.getSourceFile = (file, version, ...rest) => {
    if (path.dirname(file) !== folder) return getSourceFile(file, version, ...rest);
    const key = `${file} ${JSON.stringify(version)}`;
    const source = libraryFiles.get(key) ?? getSourceFile(file, version, ...rest);
    if (source !== undefined) libraryFiles.set(key, source);
    return source;
  };
  return host;
}

/**
 * @param {'theirs' | 'ours'} library
 * @param {{options: ts.CompilerOptions, extension?: string, types?: string[]}} configuration
 * @returns {{snippets: string[][], declarations: string[]}} the errors in each snippet, and in the
 *   declarations of the library
 */
function compile(library, { options, extension = 'ts', types = [] }) {
  const all = {
    target: ScriptTarget.ES2022,
    lib: ['lib.es2022.d.ts'],
    declaration: true,
    skipLibCheck: false,
    ...options,
    types,
  };
  const files = SNIPPETS.map((_, i) => path.join(place, library, snippetName(i, extension)));
  const program = ts.createProgram(files, all, hostOf(all));
  const directory = fs.realpathSync(LIBRARIES[library]);
  const declarations = program
    .getSourceFiles()
    .filter(({ fileName }) => path.resolve(fileName).startsWith(path.join(directory, 'index.d.ts')));
  assert.equal(declarations.length, 1);
  return {
    snippets: files.map(file => {
      const source = program.getSourceFile(file);
      return textsOf([
        ...program.getSyntacticDiagnostics(source),
        ...program.getSemanticDiagnostics(source),
        ...program.getDeclarationDiagnostics(source),
      ]);
    }),
    declarations: textsOf([
      ...program.getOptionsDiagnostics(),
      ...program.getGlobalDiagnostics(),
      ...program.getSemanticDiagnostics(declarations[0]),
    ]),
  };
}

/** @param {readonly ts.Diagnostic[]} diagnostics */
function textsOf(diagnostics) {
  return diagnostics.map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n'));
}

describe('programs that compile with the types of prom-client 15.1.3 in seven configurations', () => {
  /** @type {Set<number>} */
  const compiled = new Set();

  for (const [name, configuration] of Object.entries(CONFIGURATIONS)) {
    it(`each snippet that compiles with prom-client's types compiles with ours: ${name}`, () => {
      const theirs = compile('theirs', configuration);
      const ours = compile('ours', configuration);
      const failing = SNIPPETS.map(({ title }, i) => ({ title, errors: ours.snippets[i] })).filter(
        ({ errors }, i) => theirs.snippets[i].length === 0 && errors.length > 0,
      );
      assert.deepEqual(failing, []);
      assert.deepEqual(ours.declarations, []);
      const count = theirs.snippets.filter(errors => errors.length === 0).length;
      assert.ok(count >= 60, `${count} compile with prom-client's types`);
      theirs.snippets.forEach((errors, i) => errors.length === 0 && compiled.add(i));
    });
  }

  it('there are sixty snippets, and each compiles with the types of prom-client in one configuration or more', () => {
    assert.ok(SNIPPETS.length >= 60);
    const others = SNIPPETS.filter((_, i) => !compiled.has(i));
    const titles = others.map(({ title }) => title);
    assert.deepEqual(titles, []);
  });
});
