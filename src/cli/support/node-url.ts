// `[ID=]URL` → one node's address. A password in a URL would show in every process list and shell history. So it is
// refused, and the error says how to pass it.
import { EXIT, SeqError } from '../../core/errors.js';

export interface NodeUrl {
  /**
   * Without user and secrets: redis://host:port/db, rediss://…, unix:/path?db=N,
   * sentinel://host:port,host:port/name/db.
   */
  url: string;
  username?: string;
}

const ID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

function badUrl(shown: string, why: string, next?: string[]): SeqError {
  return new SeqError({
    code: 'BAD_NODE_URL',
    exit: EXIT.usage,
    message: `node '${shown}': ${why}`,
    why: 'the address of a node cannot be used as it is',
    changed: 'nothing',
    next: next ?? ['give it as redis://HOST:PORT, rediss://HOST:PORT or unix:/PATH, with ID= in front if it has an id'],
  });
}

/**
 * The printable part of a text that may hold a password. Of everything before the last @ only the user is kept, even
 * when the rest is malformed.
 */
export function withoutSecrets(text: string): string {
  return text
    .replace(
      /^([^=:/?@]+=)?((?:rediss?|redis\+unix|unix|sentinel|https?):\/*|[a-z][a-z+.-]*:\/\/|\/*)(.*)@/is,
      (_, id: string | undefined, scheme: string, user: string) =>
        `${id ?? ''}${scheme}${/[:@]/.test(user) ? `${user.split(/[:@]/)[0]}:***` : user}@`,
    )
    .replace(/([?&](?:password|passwd|auth|token)=)[^&\s]*/gi, '$1***');
}

function port(text: string, shown: string): string {
  if (text !== '' && (!/^\d{1,5}$/.test(text) || Number(text) < 1 || Number(text) > 65535))
    throw badUrl(shown, `port ${text} is not from 1 to 65535`);
  return text || '6379';
}

function database(text: string, shown: string): string {
  if (text === '') return '';
  if (!/^\d{1,5}$/.test(text)) throw badUrl(shown, `database '${text}' is not a number`);
  return Number(text) === 0 ? '' : `/${Number(text)}`;
}

/** Checks and normalises one address: two spellings of the same address come out equal. */
export function checkUrl(text: string): NodeUrl {
  const shown = withoutSecrets(text);
  if (text.startsWith('/')) return checkUrl(`unix://${text}`);
  if (/^unix:\/(?!\/)/.test(text)) return checkUrl(`unix://${text.slice('unix:'.length)}`);
  const scheme = /^([a-z][a-z+]*):\/\//.exec(text)?.[1];
  if (!scheme) return checkUrl(/^[^\s/@?#=]+(:\d+)?(\/\d+)?$/.test(text) ? `redis://${text}` : missing(shown));
  const rest = text.slice(scheme.length + 3);
  const at = rest.lastIndexOf('@');
  const userinfo = at < 0 ? '' : rest.slice(0, at);
  if (userinfo.includes(':') || /[?&](password|passwd|auth)=/i.test(text)) {
    throw badUrl(shown, 'a password must not be part of an address', [
      'SEQ_PASSWORD_FILE=/path/to/file seq … (or SEQ_PASSWORD, SEQ_PASSWORD_COMMAND)',
      'seq context set NAME --node … --password-file /path/to/file (or --password-command, --password-env)',
    ]);
  }
  let username: string | undefined;
  try {
    username = userinfo === '' ? undefined : decodeURIComponent(userinfo);
  } catch {
    throw badUrl(shown, 'the user name is not written as URLs write it (%40 for @)');
  }
  const where = at < 0 ? rest : rest.slice(at + 1);
  const done = (url: string): NodeUrl => (username === undefined ? { url } : { url, username });

  if (scheme === 'unix' || scheme === 'redis+unix') {
    const [path = '', query = ''] = where.split('?');
    if (!path.startsWith('/')) throw badUrl(shown, 'a unix socket needs an absolute path');
    const db = database(new URLSearchParams(query).get('db') ?? '', shown);
    return done(`unix:${path}${db ? `?db=${db.slice(1)}` : ''}`);
  }
  if (scheme === 'sentinel') {
    const match = /^([^/?#]+)\/([A-Za-z0-9._-]+)(?:\/(\d+))?$/.exec(where);
    if (!match) throw badUrl(shown, 'a sentinel address is sentinel://HOST:PORT,HOST:PORT/MASTER');
    const hosts = (match[1] as string)
      .split(',')
      .map((host) => (/:\d+$/.test(host) ? host : `${host}:26379`).toLowerCase());
    return done(`sentinel://${hosts.join(',')}/${match[2]}${database(match[3] ?? '', shown)}`);
  }
  if (scheme !== 'redis' && scheme !== 'rediss')
    throw badUrl(shown, `scheme '${scheme}' is not one of redis, rediss, unix, sentinel`);
  const match = /^(\[[0-9A-Fa-f:.%]+\]|[\p{L}\p{N}._-]+)(?::(\d*))?(?:\/([^?#]*))?$/u.exec(where);
  if (!match) throw badUrl(shown, where === '' ? 'there is no host' : 'it is not HOST, HOST:PORT or HOST:PORT/DB');
  const host = (match[1] as string).toLowerCase();
  return done(`${scheme}://${host}:${port(match[2] ?? '', shown)}${database(match[3] ?? '', shown)}`);
}

function missing(shown: string): never {
  throw badUrl(shown, 'it is not an address');
}

/** `n1=redis://…` or `redis://…`. */
export function parseNodeFlag(text: string): NodeUrl & { id?: string } {
  const match = /^([^=:/?]+)=(.*)$/s.exec(text);
  if (!match) return checkUrl(text);
  const id = match[1] as string;
  if (!ID.test(id)) throw badUrl(withoutSecrets(text), `id '${id}' is not made of A-Z, a-z, 0-9, '.', '_' and '-'`);
  return { id, ...checkUrl(match[2] as string) };
}
