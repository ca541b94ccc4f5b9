'use strict';

// A worker of the demo whose default metrics can be changed while it runs. V8 optimises the same code
// differently in two processes, which makes a larger difference than default metrics do.

// Before the library: it replaces a function that the library takes when it is loaded.
const { SectionTimes } = require('./section-times.js');

require('../../example/demo/worker.js');
const { AggregatorRegistry, Registry, collectDefaultMetrics, register } = require('../..');
const { isControl } = require('../cluster/control-messages.js');

const defaults = new Registry();
AggregatorRegistry.setRegistries([register, defaults]);
/** @type {SectionTimes | undefined} */
let sectionTimes;

const commands = {
  /** Collects the default metrics of a lane from now on. */
  take({ lane }) {
    defaults.clear(); // stops their observers
    if (lane !== 'none') collectDefaultMetrics({ register: defaults, runtime: lane === 'runtime' });
    return defaults.getMetricsAsArray().length;
  },

  /** Times the sections of the lane's scrapes from now on. */
  timeSections() {
    sectionTimes = new SectionTimes(defaults);
  },

  /** @returns {import('./section-times.js').Sections} since the last call */
  sections: () => sectionTimes.take(),

  endSections() {
    sectionTimes.end();
  },
};

process.on('message', message => {
  if (!isControl(message)) return;
  const { bench, id, settings } = message;
  process.send({ bench, id, answer: commands[bench](settings) });
});
