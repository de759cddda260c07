// Node addresses: `[ID=]redis://[user[:password]@]host[:port][/db]`, `rediss://…`, `unix:/path[?db=n]`, `host:port`.
// Logs, errors and tables get the redacted form, so that no secret leaves this file.
import { EXIT, SeqError } from '../errors.js';

export interface NodeUrl {
  id?: string;
  transport: 'tcp' | 'tls' | 'unix';
  /** '' for unix sockets. */
  host: string;
  port: number;
  /** Socket path, '' otherwise. */
  path: string;
  db: number;
  username?: string;
  password?: string;
  /** The complete address without secrets. */
  redacted: string;
}

const ID = /^[A-Za-z0-9_.-]{1,64}$/;

function badUrl(text: string, why: string): SeqError {
  return new SeqError({
    code: 'BAD_NODE_URL',
    exit: EXIT.config,
    message: `'${withoutPassword(text)}' is not the address of a node`,
    why,
    changed: 'nothing',
    next: ['write it as [ID=]redis://host:port[/db], rediss://host:port, unix:/path/to/socket, or host:port'],
  });
}

/** Cuts out everything between the scheme (or the start) and the last `@`, even when the rest is malformed. */
function withoutPassword(text: string): string {
  return text
    .replace(/^([^=:/?@]+=)?([a-z][a-z0-9+.-]*:\/\/)?.*@/is, '$1$2')
    .replace(/([?&](?:password|passwd|auth|token)=)[^&\s]*/gi, '$1')
    .slice(0, 200);
}

function dbOf(text: string, digits: string): number {
  if (digits === '') return 0;
  // Do not quote the text: it may be the rest of a password.
  if (!/^\d{1,5}$/.test(digits)) throw badUrl(text, 'what follows the host is not a database number');
  return Number(digits);
}

function decoded(text: string, part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    throw badUrl(text, 'its user or password has a broken %-escape');
  }
}

/** Throws a SeqError (78) that names the wrong part. */
export function parseNodeUrl(text: string): NodeUrl {
  const named = /^([^=:/?@]+)=(.+)$/s.exec(text);
  const address = named?.[2] ?? text;
  const id = named?.[1];
  if (id !== undefined && !ID.test(id))
    throw badUrl(text, `its id '${id.slice(0, 70)}' is not made of A-Z, a-z, 0-9, dot, underscore, hyphen`);
  const url = addressOf(text, address);
  return id === undefined ? url : { id, ...url };
}

function addressOf(text: string, address: string): NodeUrl {
  if (address.startsWith('unix:')) return unixAddress(text, address);
  const schemed = /^([a-z][a-z0-9+.-]*):\/\//i.exec(address);
  const scheme = schemed?.[1]?.toLowerCase() ?? 'redis';
  if (scheme !== 'redis' && scheme !== 'rediss')
    throw badUrl(text, `the scheme '${scheme}' is not one of redis, rediss, unix`);
  if (schemed === null && !/^(\[[^\]]+\]|[^:/@\s]+):\d+$/.test(address))
    throw badUrl(text, 'without a scheme it must be host:port');
  let url: URL;
  try {
    url = new URL(schemed === null ? `redis://${address}` : address);
  } catch {
    throw badUrl(text, 'host or port cannot be read (a port is 1 to 65535)');
  }
  if (url.hostname === '') throw badUrl(text, 'the host is missing');
  if (url.hash !== '' || url.search !== '') throw badUrl(text, 'nothing may follow the database number');
  const port = url.port === '' ? 6379 : Number(url.port);
  if (port < 1) throw badUrl(text, 'port 0 cannot be connected to');
  const db = dbOf(text, url.pathname.replace(/^\//, ''));
  const transport = scheme === 'rediss' ? ('tls' as const) : ('tcp' as const);
  return {
    transport,
    host: url.hostname.replace(/^\[|\]$/g, ''),
    port,
    path: '',
    db,
    ...(url.username === '' ? {} : { username: decoded(text, url.username) }),
    ...(url.password === '' ? {} : { password: decoded(text, url.password) }),
    redacted: `${scheme}://${url.hostname}:${port}${db === 0 ? '' : `/${db}`}`,
  };
}

function unixAddress(text: string, address: string): NodeUrl {
  const [file = '', query = ''] = address
    .slice('unix:'.length)
    .replace(/^\/\/(?=\/)/, '')
    .split('?', 2);
  if (!file.startsWith('/')) throw badUrl(text, 'the path of a unix socket starts with /');
  if (query !== '' && !/^db=\d+$/.test(query))
    throw badUrl(text, 'after the path of a unix socket only ?db=N may follow');
  const db = dbOf(text, query.slice('db='.length));
  return {
    transport: 'unix',
    host: '',
    port: 0,
    path: file,
    db,
    redacted: `unix:${file}${db === 0 ? '' : `?db=${db}`}`,
  };
}
