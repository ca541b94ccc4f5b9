'use strict';

// A self-contained HTML page: no script, and nothing is loaded from elsewhere.

const { roundTitle } = require('./plan.js');
const { claimsTable, ratiosTable, remarks, runsTable } = require('./report.js');

const STYLE = `
:root { color-scheme: light dark; --ink: #222222; --paper: #ffffff; --line: #d0d0d0; --bad: #b00020; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e4e4; --paper: #14171a; --line: #3a3f45; --bad: #ff7a8a; }
}
body { margin: 1.5rem auto; max-width: 1120px; padding: 0 1rem; font: 15px/1.5 sans-serif; color: var(--ink); background: var(--paper); }
svg { max-width: 100%; height: auto; }
.table { overflow-x: auto; }
table { border-collapse: collapse; margin: 0.75rem 0; font-variant-numeric: tabular-nums; }
th, td { border-bottom: 1px solid var(--line); padding: 0.25rem 0.7rem; text-align: right; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
.missed { color: var(--bad); font-weight: bold; }
`;

/**
 * @param {import('./results.js').Results} results
 * @param {string} drawing as SVG
 * @returns {string} HTML
 */
function pageOf({ rounds, machine, date }, drawing) {
  const claims = claimsTable(rounds);
  return [
    '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n',
    '<meta name="viewport" content="width=device-width, initial-scale=1">\n',
    `<title>Which client stalls a cluster?</title>\n<style>${STYLE}</style>\n</head>\n<body>\n`,
    '<h1>Which client stalls a cluster?</h1>\n',
    paragraph(`${date.slice(0, 10)}, ${machine}.`),
    paragraph(
      'A cluster serves requests at 40 % of what it can. Thin lines: not scraped. Bold lines: scraped. ' +
        'A bold line that leaves the thin ones is a client that makes requests wait. ' +
        'P99 is what one request in a hundred exceeds; a request that is not answered in 10 s counts as 10 s.',
    ),
    drawing,
    claims.rows.length > 0 ? `<h2>What is promised</h2>\n${tableOf(claims)}` : '',
    '<h2>Scraped against unscraped</h2>\n',
    paragraph(
      'Ratios within a repetition: their median, and in brackets the interval that holds it with 95 % confidence (bootstrap). ' +
        'The last column compares two runs that are equal: it says how much of all this is noise.',
    ),
    tableOf(ratiosTable(rounds)),
    '<h2>The runs</h2>\n',
    paragraph('Medians of the repetitions (least–most). The numbers 1 to 5 are those of the article.'),
    ...rounds.map(roundSection),
    '</body>\n</html>\n',
  ].join('');
}

/** Control characters become spaces: HTML has no way to write them. */
function escaped(content) {
  const entities = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };
  return content.replace(/\p{Cc}/gu, ' ').replace(/[&<>"]/g, character => entities[character]);
}

function roundSection(measured) {
  const lines = remarks(measured).map(remark => `<li>${escaped(remark)}</li>`);
  return `<h3>${escaped(roundTitle(measured.round))}</h3>\n<ul>${lines.join('')}</ul>\n${tableOf(runsTable(measured))}`;
}

function paragraph(content) {
  return `<p>${escaped(content)}</p>\n`;
}

function tableOf({ head, rows }) {
  const cells = (tag, texts) =>
    texts.map(content => `<${tag}${markOf(content)}>${escaped(content)}</${tag}>`).join('');
  const lines = rows.map(row => `<tr>${cells('td', row)}</tr>\n`);
  return `<div class="table"><table>\n<tr>${cells('th', head)}</tr>\n${lines.join('')}</table></div>\n`;
}

function markOf(content) {
  return content === 'MISSED' ? ' class="missed"' : '';
}

module.exports = { pageOf };
