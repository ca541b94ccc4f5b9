'use strict';

// What drawings are made of: elements of SVG as text.

/**
 * @param {number} x
 * @param {number} y of the baseline
 * @param {string} content
 * @param {string} [attributes]
 * @returns {string}
 */
function text(x, y, content, attributes = '') {
  return `<text x="${rounded(x)}" y="${rounded(y)}"${attributes && ` ${attributes}`}>${escaped(content)}</text>\n`;
}

/**
 * @param {number} x1
 * @param {number} y1
 * @param {number} x2
 * @param {number} y2
 * @param {string} attributes
 * @returns {string} a straight line
 */
function segment(x1, y1, x2, y2, attributes) {
  const [fromX, fromY, toX, toY] = [x1, y1, x2, y2].map(rounded);
  return `<line x1="${fromX}" y1="${fromY}" x2="${toX}" y2="${toY}" ${attributes}/>\n`;
}

/**
 * @param {number} value in pixels
 * @returns {number} to a tenth
 */
function rounded(value) {
  return Number(value.toFixed(1));
}

/**
 * As XML and HTML take it; control characters, which XML has no way to write, become spaces.
 *
 * @param {string} content
 * @returns {string}
 */
function escaped(content) {
  const entities = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };
  return content.replace(/\p{Cc}/gu, ' ').replace(/[&<>"]/g, character => entities[character]);
}

/**
 * Moves names apart until none covers another: down first, then up from the lowest place there is.
 *
 * @param {number[]} heights from the top down
 * @param {{gap: number, bottom: number}} limits the least distance of two, and the lowest place
 * @returns {number[]}
 */
function spread(heights, { gap, bottom }) {
  const moved = [...heights];
  for (let index = 1; index < moved.length; index++) {
    moved[index] = Math.max(moved[index], moved[index - 1] + gap);
  }
  let limit = bottom;
  for (let index = moved.length - 1; index >= 0; index--) {
    moved[index] = Math.min(moved[index], limit);
    limit = moved[index] - gap;
  }
  return moved;
}

module.exports = { text, segment, rounded, escaped, spread };
