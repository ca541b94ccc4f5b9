'use strict';

/**
 * @param {string} spaceName V8's name, e.g. new_large_object_space
 * @returns {string} e.g. new_large_object
 */
function shortNameOf(spaceName) {
  const end = spaceName.indexOf('_space');
  return end === -1 ? spaceName : spaceName.slice(0, end);
}

module.exports = { shortNameOf };
