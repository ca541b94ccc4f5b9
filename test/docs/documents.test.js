'use strict';

// The documents stay true: the tables are those of the code, links lead somewhere, and every path that a
// document names exists.

const assert = require('node:assert');
const fs = require('node:fs');
const path = require('node:path');
const { describe, it } = require('node:test');
const fileNames = require('../../lib/spool/file-names');
const messages = require('../../lib/cluster/wire/messages');

const ROOT = path.join(__dirname, '../..');

describe('docs/internals/snapshot-format.md', () => {
  const text = fs.readFileSync(path.join(ROOT, 'docs/internals/snapshot-format.md'), 'utf8');

  /** The first cells of the first table below a heading. */
  function firstCellsBelow(heading, page = 'snapshot-format.md') {
    const text = fs.readFileSync(path.join(ROOT, 'docs/internals', page), 'utf8');
    const [, section] = text.split(`${heading}\n`);
    const [, rows] = /^\|.*\n\|[ |-]+\n((?:\|.*\n)+)/m.exec(section);
    return rows.split('\n').flatMap(row => /^\| `([^`]+)`/.exec(row)?.[1] ?? []);
  }

  it('docs/internals/snapshot-format.md names each code of refusal that there is, and no other', () => {
    const thrown = fs.readdirSync(path.join(ROOT, 'lib'), { recursive: true }).flatMap(file => {
      if (!file.endsWith('.js')) return [];
      const code = fs.readFileSync(path.join(ROOT, 'lib', file), 'utf8');
      return Array.from(code.matchAll(/new SnapshotError\(\s*'([a-z-]+)'/g), match => match[1]);
    });
    const documented = firstCellsBelow('### Codes of refusal');
    assert.deepStrictEqual([...new Set(documented)].sort(), [...new Set(thrown)].sort());
  });

  it('docs/internals/messages.md has the types of the messages, and snapshot-format.md the names of the files', () => {
    const { WELCOME, LAST, PAGE, REQUEST, RESPONSE } = messages;
    assert.deepStrictEqual(firstCellsBelow('## Messages', 'messages.md'), [
      ...[WELCOME, LAST, PAGE, PAGE, REQUEST, RESPONSE],
    ]);
    const [, pattern] = /matches\s+`([^`]+)`/.exec(text);
    const name = fileNames.columnsName(3, 12);
    assert.deepStrictEqual(new RegExp(pattern).exec(name).slice(1), ['3', '12']);
  });
});

describe('the documents', () => {
  const documents = [
    ...['README.md', 'CHANGELOG.md', 'CONTRIBUTING.md', 'SECURITY.md'],
    ...['test/README.md', 'benchmarks/README.md', 'example/README.md'],
    ...fs.readdirSync(path.join(ROOT, 'docs'), { recursive: true }).map(name => `docs/${name}`),
  ];

  for (const document of documents.filter(name => name.endsWith('.md'))) {
    it(`${document} links to what is there`, () => {
      const text = fs.readFileSync(path.join(ROOT, document), 'utf8');
      for (const [, target] of text.matchAll(/\]\(([^)\s]+)\)/g)) {
        if (/^https?:/.test(target)) continue;
        const [file, anchor] = target.split('#');
        const linked =
          file === '' ? path.join(ROOT, document) : path.join(ROOT, path.dirname(document), file);
        assert.ok(fs.existsSync(linked), `${document}: ${target}`);
        if (anchor !== undefined) assert.ok(anchorsOf(linked).has(anchor), `${document}: ${target}`);
      }
    });
  }

  const files = new Set(fs.readdirSync(path.join(ROOT, 'lib'), { recursive: true }));
  const names = new Set(Array.from(files, file => path.basename(file)));
  const folders = fs.readdirSync(path.join(ROOT, 'lib'), { withFileTypes: true }).filter(isDirectory);

  for (const document of ['docs/internals/architecture.md', 'CONTRIBUTING.md']) {
    it(`${document} names every folder of lib, and no file that is not there`, () => {
      const text = fs.readFileSync(path.join(ROOT, document), 'utf8');
      for (const { name } of folders) assert.ok(text.includes(`lib/${name}`), name);
      for (const [, file] of text.matchAll(/(?<![A-Za-z./-])([a-z][a-z-]*\.js)\b/g)) {
        assert.ok(names.has(file) || fs.existsSync(path.join(ROOT, file)), file);
      }
      for (const [, file] of text.matchAll(/\blib\/([a-z/-]+(?:\.js)?)/g)) {
        assert.ok(files.has(path.normalize(file.replace(/\/$/, ''))), file);
      }
    });
  }
});

/** @param {fs.Dirent} entry */
function isDirectory(entry) {
  return entry.isDirectory();
}

/** The anchors of a document's headings, as Markdown readers make them. */
function anchorsOf(file) {
  const headings = fs.readFileSync(file, 'utf8').matchAll(/^#+ (.*)$/gm);
  return new Set(
    Array.from(headings, ([, heading]) =>
      heading
        .toLowerCase()
        .replace(/[^\p{L}\p{N} _-]/gu, '')
        .replaceAll(' ', '-'),
    ),
  );
}

describe('docs/reliability.md', () => {
  const text = fs.readFileSync(path.join(ROOT, 'docs/reliability.md'), 'utf8');
  const named = [...text.matchAll(/`(test\/[^`]+)`: "([^"]+)"/g)];

  it('docs/reliability.md names a test for nearly every statement', () => {
    const statements = text.match(/^- /gm).length;
    assert.ok(named.length >= statements - 3, `${named.length} tests for ${statements} statements`);
  });

  for (const [, file, title] of named) {
    it(`${file} has the test "${title}"`, () => {
      const source = fs.readFileSync(path.join(ROOT, file), 'utf8');
      const titles = source.matchAll(/\b(?:it|test|describe)\(\s*(['"`])((?:\\.|(?!\1).)*)\1/g);
      assert.ok([...titles].some(([, , found]) => found.replaceAll("\\'", "'").includes(title)));
    });
  }
});
