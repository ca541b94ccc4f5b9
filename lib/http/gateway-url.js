'use strict';

// The URL of a Pushgateway as options of http.request(), with the fields of the deprecated url.parse(),
// because mocks of applications read them. `URL` drops default ports, and takes `user:@` for `user@`.

const SCHEME = /^[a-z0-9.+-]+:/i;

// The last `@` ends the credentials.
const AUTHORITY = /^(?:(.*)@)?(\[[^[\]]*\]|[^\s:;[\]'"<>`{}|^%@]*)(?::(\d*))?$/s;

const NO_AUTHORITY = { auth: null, host: null, hostname: null, port: null };

/** Characters of a path that url.parse() escapes. */
const ESCAPED = /[\t\n\r "'<>^`{|}]/g;

/**
 * @param {string} gatewayUrl its query is ignored
 * @param {string} suffix of the path, escaped
 * @returns {Record<string, any>} options of http.request()
 * @throws {TypeError} with code ERR_INVALID_ARG_TYPE or ERR_INVALID_URL
 * @throws {URIError} if the credentials contain an invalid escape
 */
function requestTarget(gatewayUrl, suffix) {
  if (typeof gatewayUrl !== 'string') {
    throw errorWith(
      'ERR_INVALID_ARG_TYPE',
      `The "url" argument must be of type string. Received ${gatewayUrl}`,
    );
  }
  const text = gatewayUrl.trim().split(/[?#]/, 1)[0].replaceAll('\\', '/');
  const protocol = SCHEME.exec(text)?.[0].toLowerCase() ?? null;
  let rest = text.slice(protocol?.length ?? 0);
  const slashes = protocol !== null && rest.startsWith('//');
  if (slashes) rest = rest.slice(2);
  // `http:x` is a path, `localhost:9091` a scheme with an authority.
  const hasAuthority = slashes || (protocol !== null && !/^https?:$/.test(protocol));
  const authority = hasAuthority ? rest.split('/', 1)[0] : '';
  const pathname = rest.slice(authority.length).replace(/\/+$/, '') + suffix;
  const { auth, host, hostname, port } = hasAuthority ? partsOf(authority) : NO_AUTHORITY;
  const path = pathname.replace(ESCAPED, escapeCharacter);
  const credentials = auth === null ? '' : `${encodeURIComponent(auth).replaceAll('%3A', ':')}@`;
  return {
    protocol,
    slashes: slashes || null,
    auth,
    host,
    port,
    hostname,
    hash: null,
    search: null,
    query: null,
    pathname: path,
    path,
    href: `${protocol ?? ''}${slashes ? '//' : ''}${credentials}${host ?? ''}${path}`,
  };
}

/** @param {string} authority `user:password@host:port` */
function partsOf(authority) {
  const [, credentials, name, port] = AUTHORITY.exec(authority) ?? [];
  if (name === undefined) throw errorWith('ERR_INVALID_URL', 'Invalid URL');
  const ascii = asciiName(name);
  return {
    auth: credentials ? decodeURIComponent(credentials) : null,
    host: port ? `${ascii}:${port}` : ascii,
    hostname: ascii.replace(/^\[(.*)\]$/, '$1'),
    port: port || null,
  };
}

/** @param {string} name of a host */
function asciiName(name) {
  // eslint-disable-next-line no-control-regex
  if (/^[\0-\x7f]*$/.test(name)) return name.toLowerCase();
  const ascii = require('url').domainToASCII(name);
  if (ascii === '') throw errorWith('ERR_INVALID_URL', 'Invalid URL');
  return ascii;
}

/** @param {string} character ASCII */
function escapeCharacter(character) {
  return `%${character.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`;
}

/**
 * @param {string} code
 * @param {string} message
 */
function errorWith(code, message) {
  return Object.assign(new TypeError(message), { code });
}

module.exports = { requestTarget };
