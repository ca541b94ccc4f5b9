'use strict';

// A table whose rows expire (the option maxIdleSeconds). Recording reads no clock: each row has a byte with
// the number of the tick in which it was last used. A tick takes a 16th of the maximum idle time. A row is
// removed when that time has passed since the end of its tick: never too early, and at most two ticks too
// late. A child that is bound to its row does not update the byte, so each tick makes all children bind
// again.
//
// A timer starts the ticks and sweeps the table in slices. If the timer is late, adding rows does the same,
// so a process that adds rows without a pause needs no more memory than others.

const { SeriesTable } = require('./series-table');
const { LiveRows } = require('./live-rows');
const { hooks } = require('./hook-recordings');
const { idleClock } = require('../event-loop/idle-clock');
const { runInSlices, runThrough } = require('../event-loop/slices');

const TICKS_PER_IDLE_TIME = 16;

/** Timers may be early. */
const MOST_TICKS_PER_IDLE_TIME = 20;

/**
 * How many tick numbers there are; they are reused. A number is free by then: after each sweep, which ends
 * before the next tick, all remaining rows were used in one of the last 22 ticks.
 */
const TICK_NUMBERS = 32;

/** Special tick numbers: a `collect` hook has used the row since the last scrape started, or before that. */
const BY_HOOK = 255;
const BY_HOOK_BEFORE = 254;

/** No row has it. */
const NO_TICK = -1;

/** A bit beside the tick of a row that was moved or removed: its next use is looked up and noted. */
const UNNOTED = TICK_NUMBERS;

/** Checking these rows takes less than 0.1 µs, removing all of them 10 µs. */
const ROWS_PER_STEP = 64;

/** The clock is read once for this number of added rows. */
const ROWS_PER_LOOK = 256;

/** Short, because the last step may take as long: followers copy rows, into arrays that grow. */
const SLICE_MILLISECONDS = 0.4;

class ExpiringTable extends SeriesTable {
  #maxIdleSeconds;
  #expiredCount = 0;
  /** By row: the tick in which it was used last; perhaps with UNNOTED. */
  #ticks = new Uint8Array(4);
  #tick = 0;
  /** The same; NO_TICK while each use of a row is to be noted, for a compaction. */
  #noted = 0;
  /** When this tick started. */
  #start = idleClock.now();
  /** When each tick ended. */
  #ends = new Float64Array(TICK_NUMBERS).fill(Infinity);
  /** A bit for each tick whose rows expire. */
  #expired = 0;
  /** The row that the sweep checks next; Infinity if no sweep is under way. */
  #next = Infinity;
  #added = 0;
  /** Whether a row may have been used by a hook. */
  #hasHookRows = false;
  /** Whether a timer is set. */
  #isTicking = false;

  /**
   * @param {readonly string[]} labelNames at least one
   * @param {number} width numbers a row
   * @param {number} maxIdleSeconds after which an unused row expires
   * @param {number} [maxSeries] see SeriesTable
   * @param {() => void} [onFirstOverflow] see SeriesTable
   */
  constructor(labelNames, width, maxIdleSeconds, maxSeries, onFirstOverflow) {
    super(labelNames, width, maxSeries, onFirstOverflow);
    this.#maxIdleSeconds = maxIdleSeconds;
    /** @type {((row: number) => void) | undefined} called before a row expires */
    this.onExpiry = undefined;
  }

  get maxIdleSeconds() {
    return this.#maxIdleSeconds;
  }

  get expiredCount() {
    return this.#expiredCount;
  }

  /** @param {import('./series-table').Labels} labels */
  locate(labels) {
    const row = /** @type {import('./label-index').LabelIndex} */ (this.index).find(labels);
    // Most rows have been used before in this tick. All that follows would take as long as what it saves.
    if (row >= 0 && this.#ticks[row] === this.#noted && hooks.running === 0) return row;
    return this.#locateFound(row, labels);
  }

  /**
   * @param {number} found what the index has found
   * @param {import('./series-table').Labels} labels
   */
  #locateFound(found, labels) {
    const row = this.liveCount < this.fullAt ? this.startFound(found, labels) : super.locate(labels);
    if (row >= 0) this.touch(row);
    return row;
  }

  /** @param {number} row that is live */
  touch(row) {
    if (this.#ticks[row] !== this.#noted || hooks.running > 0) this.#note(row);
  }

  /** @param {number} row */
  #note(row) {
    if (hooks.running > 0) this.#noteHook(row);
    else if (this.#ticks[row] < BY_HOOK_BEFORE) this.#ticks[row] = this.#tick;
    this.noteUse(row);
  }

  /**
   * @param {number} row
   * @param {boolean} [isExpired]
   */
  removeRow(row, isExpired) {
    super.removeRow(row, isExpired);
    this.#ticks[row] |= UNNOTED;
  }

  clear() {
    super.clear();
    this.#ticks.fill(UNNOTED);
  }

  /** @param {number} row */
  #noteHook(row) {
    // Otherwise nothing would expire while a hook hangs and there are no scrapes.
    const isHanging = hooks.called === 0 && idleClock.now() - hooks.lastCall >= this.#maxIdleSeconds * 1000;
    this.#ticks[row] = isHanging ? this.#tick : BY_HOOK;
    this.#hasHookRows ||= !isHanging;
  }

  /** To be called before the `collect` hook of the metric. */
  scrapeStarts() {
    // Children bind again, so that those which the hooks of this scrape use are noted.
    this.rebind();
    if (!this.#hasHookRows) return;
    this.#hasHookRows = false;
    // The hook of another metric may have used these rows earlier in this scrape, so they stay for one more
    // scrape.
    for (let row = 0; row < this.rowCount; row++) {
      const tick = this.#ticks[row];
      if (tick < BY_HOOK_BEFORE) continue;
      this.#ticks[row] = tick === BY_HOOK ? BY_HOOK_BEFORE : this.#tick;
      this.#hasHookRows = true;
    }
  }

  /**
   * @protected
   * @param {number} row
   */
  append(row) {
    super.append(row);
    if (row >= this.#ticks.length) this.#ticks = copyOf(this.#ticks, this.#ticks.length * 2);
    this.#ticks[row] = this.#tick;
    if (++this.#added % ROWS_PER_LOOK === 0) this.#startTick();
    if (this.#next < this.rowCount && !this.#sweepStep()) runThrough(this.#makeOrder());
    if (!this.#isTicking) this.#startTimer();
  }

  /** @returns {import('./series-table').RowMove[]} */
  startMoves() {
    const moves = super.startMoves();
    this.#noted = NO_TICK;
    let ticks = new Uint8Array(this.rowCount);
    /** @type {import('./series-table').RowMove} */
    const ownMove = {
      copy: (old, row) => {
        if (row >= ticks.length) ticks = copyOf(ticks, row * 2);
        ticks[row] = this.#ticks[old] | UNNOTED;
      },
      finish: rowCount => {
        this.#ticks = copyOf(ticks, Math.max(rowCount, 4));
        // The sweep starts again, because rows that it has not checked may have smaller numbers now.
        if (this.#next < Infinity) this.#next = 0;
        this.#noted = this.#tick;
      },
    };
    return [ownMove, ...moves];
  }

  /** Starts the next tick if it is due and no sweep is under way. */
  #startTick() {
    const now = idleClock.now();
    const maxIdle = this.#maxIdleSeconds * 1000;
    if (this.#next < Infinity || now - this.#start < maxIdle / MOST_TICKS_PER_IDLE_TIME) return;
    this.#ends[this.#tick] = now;
    this.#tick = (this.#tick + 1) % TICK_NUMBERS;
    if (this.#noted !== NO_TICK) this.#noted = this.#tick;
    this.#ends[this.#tick] = Infinity;
    this.#start = now;
    this.#expired = 0;
    this.#ends.forEach((end, tick) => (this.#expired |= Number(now - end >= maxIdle) << tick));
    this.rebind();
    this.#next = this.#expired === 0 ? Infinity : 0;
  }

  /** @returns {boolean} false if the next row would be the first of the table to be removed */
  #sweepStep() {
    const end = Math.min(this.#next + ROWS_PER_STEP, this.rowCount);
    for (; this.#next < end; this.#next++) {
      const row = this.#next;
      const tick = this.#ticks[row];
      // A shift leaves out UNNOTED.
      if (tick >= BY_HOOK_BEFORE || ((this.#expired >>> tick) & 1) === 0) continue;
      if (this.live === undefined) return false;
      if (this.isLive(row)) this.#expire(row);
    }
    if (this.#next >= this.rowCount) this.#next = Infinity;
    return true;
  }

  /**
   * Creates the order of the rows, which the first removal needs, in steps. In one step it would take 2 ms
   * for 100,000 rows.
   *
   * @returns {Generator<void>}
   */
  *#makeOrder() {
    const live = new LiveRows(this.rowCount);
    for (let row = 0; row < this.rowCount && this.live === undefined; row++) {
      live.append(row);
      if (row % ROWS_PER_STEP === 0) yield;
    }
    this.live ??= live;
  }

  /** @param {number} row */
  #expire(row) {
    this.onExpiry?.(row);
    this.#expiredCount++;
    this.removeRow(row, true);
  }

  /** @returns {Generator<void>} */
  *#sweep() {
    for (; this.#next < Infinity; yield) if (!this.#sweepStep()) yield* this.#makeOrder();
    yield* this.compactionSteps();
  }

  /** Called by the timer. Never rejected. */
  async sweepInSlices() {
    this.#startTick();
    try {
      await runInSlices(this.#sweep(), SLICE_MILLISECONDS);
    } catch {
      // There is no memory for a compaction. The next sweep tries again.
    }
    if (this.liveCount > 0) this.#startTimer();
    else this.#isTicking = false;
  }

  #startTimer() {
    this.#isTicking = true;
    // Weak, because the timer must not keep the table of a metric that is not in use any more.
    startTimer(new WeakRef(this), (this.#maxIdleSeconds * 1000) / TICKS_PER_IDLE_TIME);
  }
}

/**
 * @param {WeakRef<ExpiringTable>} table
 * @param {number} milliseconds
 */
function startTimer(table, milliseconds) {
  idleClock.after(milliseconds, () => table.deref()?.sweepInSlices());
}

/**
 * @param {Uint8Array} bytes
 * @param {number} length
 */
function copyOf(bytes, length) {
  const copy = new Uint8Array(length);
  copy.set(bytes.subarray(0, length));
  return copy;
}

module.exports = { ExpiringTable };
