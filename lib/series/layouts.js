'use strict';

// The meaning of the numbers in a metric's rows: how many there are, how those of several sources are
// combined, and which samples a page shows. There is one object for each kind of layout, and no other code
// depends on the kind. CONTRIBUTING.md says how to add one.

/**
 * The layout of one metric. Plain data, because it is passed between threads and copies of this package.
 * `marks` are the values of the label that distinguishes the samples of a row: bounds of a histogram,
 * quantiles of a summary.
 *
 * @typedef {{kind: string, marks: readonly number[]}} Layout
 */

/**
 * How several numbers are combined. Numbers in the same column are added up, unless the column has another
 * rule. The aggregators of metrics are rules, too.
 *
 * @typedef {'sum' | 'min' | 'max' | 'first' | 'average'} Rule
 */

/**
 * A sample of each row. `mark` is the value of its marker label, `column` the column of its exemplar;
 * undefined if it has none.
 *
 * @typedef {{suffix: string, mark?: number | string, column?: number}} RowSample
 */

/**
 * @typedef {object} Kind
 * @property {string} name the type of the metrics, if that type has its own kind
 * @property {string} [marker] the label that distinguishes the samples of a row
 * @property {boolean} [hasMarkColumns] whether each mark has a column, which is added up
 * @property {readonly Rule[]} rules of the columns after those of the marks, one rule for each column
 * @property {boolean} [isCumulative] whether the columns of marks, and the next one, are shown as cumulative
 *   counts
 * @property {boolean} [isComputed] whether the values of samples are not in columns, and take long to
 *   compute; the last column is then the number of observations
 * @property {boolean} [hasBuckets] whether rows have sparse buckets besides their columns, see NativeBuckets
 * @property {boolean} [hasOwnNames] whether rows of custom metric objects may have names of their own
 * @property {boolean} [startsWithDefaults] whether default labels come before others
 * @property {boolean} isLasting whether totals outlive their process
 * @property {(marks: readonly number[]) => RowSample[]} samples those with a mark first
 * @property {(values: number[], numbers: ArrayLike<number>, offset: number, computed: ArrayLike<number>)
 *   => void} read sets the values of a row's samples, given its columns and what is computed
 */

const ONE_SAMPLE = [{ suffix: '', column: 0 }];
const SUM_AND_COUNT = [{ suffix: '_sum' }, { suffix: '_count' }];

/** @type {Kind} one number */
const VALUE = {
  name: 'value',
  rules: ['sum'],
  hasOwnNames: true,
  // Counters are: see isLasting().
  isLasting: false,
  samples: () => ONE_SAMPLE,
  read: (values, numbers, offset) => {
    values[0] = numbers[offset];
  },
};

/**
 * Cached by the array of bounds, which never changes: creating the samples takes as long as the text of a
 * page.
 *
 * @type {WeakMap<object, RowSample[]>}
 */
const samplesOfBounds = new WeakMap();

/** @type {Kind} a count of each bound, not cumulative, the count above the last bound, the sum */
const HISTOGRAM = {
  name: 'histogram',
  marker: 'le',
  hasMarkColumns: true,
  rules: ['sum', 'sum'],
  isCumulative: true,
  startsWithDefaults: true,
  isLasting: true,
  samples: bounds => {
    let samples = samplesOfBounds.get(bounds);
    if (samples === undefined) {
      const buckets = [...bounds, '+Inf'].map((mark, column) => ({ suffix: '_bucket', mark, column }));
      samples = [...buckets, ...SUM_AND_COUNT];
      if (Object.isFrozen(bounds)) samplesOfBounds.set(bounds, samples);
    }
    return samples;
  },
  read: (values, numbers, offset) => {
    const sumColumn = values.length - 2;
    let count = 0;
    for (let column = 0; column < sumColumn; column++) values[column] = count += numbers[offset + column];
    values[sumColumn] = numbers[offset + sumColumn];
    values[sumColumn + 1] = count;
  },
};

/** @type {Kind} the sum, the count; the quantiles are computed */
const SUMMARY = {
  name: 'summary',
  marker: 'quantile',
  rules: ['sum', 'sum'],
  isComputed: true,
  isLasting: true,
  samples: quantiles => [...Array.from(quantiles, mark => ({ suffix: '', mark })), ...SUM_AND_COUNT],
  read: (values, numbers, offset, quantiles) => {
    const sumAt = values.length - 2;
    for (let i = 0; i < sumAt; i++) values[i] = quantiles[i];
    values[sumAt] = numbers[offset];
    values[sumAt + 1] = numbers[offset + 1];
  },
};

/** @type {Kind} the same for a native histogram, which also has sparse buckets; `marks` may be empty */
const NATIVE = { ...HISTOGRAM, name: 'native', hasBuckets: true };

/** In the order of their numbers in snapshots. */
const KINDS = [VALUE, HISTOGRAM, SUMMARY, NATIVE];

/** The layout of counters, gauges and custom metric objects. */
const VALUE_LAYOUT = Object.freeze({ kind: VALUE.name, marks: Object.freeze([]) });

/**
 * @param {Pick<Layout, 'kind'>} layout
 * @returns {Kind}
 */
function kindOf({ kind }) {
  // A page of 100 metrics calls this 500 times; with find() it takes a tenth longer.
  for (const known of KINDS) if (known.name === kind) return known;
  return /** @type {any} */ (undefined);
}

/**
 * @param {string} type of a metric
 * @returns {Kind}
 */
function kindOfType(type) {
  return kindOf({ kind: type }) ?? VALUE;
}

/**
 * A layout that comes from another process or thread.
 *
 * @param {unknown} kind its name, or its number in snapshots
 * @param {number[]} marks
 * @returns {Layout | undefined} undefined if there is no such kind
 */
function layoutFrom(kind, marks) {
  const found = KINDS.find(({ name }, number) => name === kind || number === kind);
  return found && { kind: found.name, marks };
}

/**
 * @param {Layout} layout
 * @returns {number} numbers per row
 */
function widthOf({ kind, marks }) {
  const { hasMarkColumns, rules } = kindOf({ kind });
  return (hasMarkColumns ? marks.length : 0) + rules.length;
}

/**
 * @param {Layout} layout
 * @returns {RowSample[]} the samples of each row in output order
 */
function samplesOf({ kind, marks }) {
  return kindOf({ kind }).samples(marks);
}

/**
 * @param {Layout} layout
 * @returns {Rule[] | undefined} by column; undefined if all are added up
 */
function rulesOf(layout) {
  const { rules } = kindOf(layout);
  if (rules.every(rule => rule === 'sum')) return undefined;
  return [...new Array(widthOf(layout) - rules.length).fill('sum'), ...rules];
}

/**
 * Maps each column to a layout with more marks. Counts are not cumulative, so a bound that a worker lacks
 * gets no count from it; its cumulative count is that of the worker's next lower bound.
 *
 * @param {Layout} from
 * @param {readonly number[]} to `from.marks` itself, or a union that includes it
 * @returns {number[]}
 */
function columnMap({ kind, marks }, to) {
  const { hasMarkColumns, rules } = kindOf({ kind });
  if (!hasMarkColumns) return [...rules.keys()];
  const columns = isSame(marks, to) ? marks.keys() : marks.map(mark => columnOf(mark, to));
  return [...columns, ...Array.from(rules, (_, i) => to.length + i)];
}

/**
 * A binary search: a Map of all bounds, made for each worker, would take quadratic time.
 *
 * @param {number} mark
 * @param {readonly number[]} union includes it
 * @returns {number}
 */
function columnOf(mark, union) {
  if (Number.isNaN(mark)) return union.length - 1;
  let [low, high] = [0, union.length - 1];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (union[middle] < mark) low = middle + 1;
    else high = middle;
  }
  return low;
}

/**
 * @param {readonly (readonly number[])[]} lists of marks
 * @returns {number[]} the first list if all are equal, else all of their numbers once, in ascending order
 */
function unionOf(lists) {
  const first = lists[0] ?? [];
  if (lists.every(list => isSame(list, first))) return [...first];
  const all = new Float64Array(lists.reduce((sum, { length }) => sum + length, 0));
  let end = 0;
  for (const list of lists) {
    all.set(list, end);
    end += list.length;
  }
  // NaN, which prom-client accepts as a bound, comes last.
  all.sort();
  // A Set treats both zeros as equal, and all NaN.
  return [...new Set(all)];
}

/**
 * @param {readonly number[]} left
 * @param {readonly number[]} right
 */
function isSame(left, right) {
  return left.length === right.length && left.every((number, i) => Object.is(number, right[i]));
}

/**
 * The rules, with the value that each starts from.
 *
 * @type {Record<string, number | undefined>}
 */
const STARTS = { sum: 0, average: 0, min: Infinity, max: -Infinity, first: undefined };

/**
 * Combines all values by a rule.
 *
 * @param {string} rule
 * @param {number[]} values at least one
 * @returns {number}
 */
function aggregated(rule, values) {
  if (STARTS[rule] === undefined) return values[0];
  const total = values.reduce((left, right) => combined(rule, left, right), STARTS[rule]);
  return rule === 'average' ? total / values.length : total;
}

/**
 * Combines two values by a rule. For an average it returns the sum, which the caller divides.
 *
 * @param {string} rule
 * @param {number} left
 * @param {number} right
 */
function combined(rule, left, right) {
  if (rule === 'min') return Math.min(left, right);
  if (rule === 'max') return Math.max(left, right);
  return rule === 'first' ? left : left + right;
}

/**
 * @param {string} type of a metric
 * @returns {boolean} whether it is a counter, whose samples end in `_total` in OpenMetrics
 */
function isCounter(type) {
  return type === 'counter';
}

/**
 * @param {string} type of a metric
 * @returns {boolean} whether its totals outlive their process
 */
function isLasting(type) {
  return isCounter(type) || kindOfType(type).isLasting;
}

module.exports = {
  KINDS,
  VALUE_LAYOUT,
  kindOf,
  kindOfType,
  layoutFrom,
  widthOf,
  samplesOf,
  rulesOf,
  columnMap,
  unionOf,
  isSame,
  STARTS,
  aggregated,
  combined,
  isCounter,
  isLasting,
};
