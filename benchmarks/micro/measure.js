'use strict';

// Measures one case with one library, in a process that does nothing else.

const { loadLibrary } = require('../shared/clients.js');
const { caseOf } = require('./plan.js');

const { id, client, seconds } = JSON.parse(process.argv[2]);

caseOf(id)
  .measure({
    client,
    seconds,
    get library() {
      return loadLibrary(client);
    },
  })
  .then(
    figures => process.send({ figures }),
    error => process.send({ error: String(error?.message ?? error).split('\n', 1)[0] }),
  )
  .finally(() => process.disconnect());
