// Completes a `redis-cli -u URL …` line of `next`, so that it reaches the node as seq does: TLS, user, password, unix
// socket, Sentinel. Pure. No password ever stands on a command line: redis-cli reads REDISCLI_AUTH, or asks.
import { shellWord } from './meant.js';

/** How seq reaches a node. Passwords are references, never values. */
export interface NodeAccess {
  url: string;
  username?: string;
  passwordFile?: string;
  passwordCommand?: string;
  passwordEnv?: string;
  tls?: { ca?: string; cert?: string; key?: string; serverName?: string; verify?: boolean };
}

/** A line that is complete already has a flag there. */
const LINE = /^redis-cli -u (\S+) ([^-].*)$/s;
/** The user of seq has no right to these, and needs none. */
const FOR_ADMINS = /^(ACL|config) /i;

/** `others`: what a node has that is not listed. */
export function completeRedisCli(line: string, nodes: readonly NodeAccess[], others: Omit<NodeAccess, 'url'>): string {
  const [, url, command] = LINE.exec(line) ?? [];
  if (url === undefined || command === undefined) return line;
  const plain = withoutUser(url);
  const access = nodes.find((node) => withoutUser(node.url) === plain) ?? { url: plain, ...others };
  const words = [...addressWords(plain), ...tlsWords(plain, access.tls)];
  const { username } = access;
  if (username !== undefined && username !== 'default' && FOR_ADMINS.test(command))
    return ['redis-cli', ...words, '--user ADMIN --askpass', command].join(' ');
  const secret = secretOf(access);
  if (username !== undefined && secret !== null) words.push(`--user ${shellWord(username)}`);
  return [...(secret === null ? [] : [`REDISCLI_AUTH=${secret}`]), 'redis-cli', ...words, command].join(' ');
}

/** redis-cli takes the word before @ for a password. */
function withoutUser(url: string): string {
  return url.replace(/^([a-z+]+:\/\/)[^@/]*@/, '$1');
}

function addressWords(url: string): string[] {
  const socket = /^unix:([^?]+)(?:\?db=(\d+))?/.exec(url);
  if (socket !== null) return [`-s ${shellWord(socket[1] as string)}`, ...(socket[2] ? [`-n ${socket[2]}`] : [])];
  const watched = /^sentinel:\/\/([^:/,]+):(\d+)[^/]*\/([^/]+)(?:\/(\d+))?$/.exec(url);
  if (watched === null) return [`-u ${shellWord(url)}`];
  const [, host, port, master, db] = watched;
  const ask = `redis-cli -h ${host} -p ${port} sentinel get-master-addr-by-name ${master}`;
  return [`-u redis://"$(${ask} | paste -sd:)"${db ? `/${db}` : ''}`];
}

function tlsWords(url: string, tls: NodeAccess['tls']): string[] {
  if (tls === undefined || !/^(rediss|sentinel):/.test(url)) return [];
  const file = (flag: string, path: string | undefined): string[] =>
    path === undefined ? [] : [`${flag} ${shellWord(path)}`];
  return [
    ...(url.startsWith('sentinel:') ? ['--tls'] : []),
    ...file('--cacert', tls.ca),
    ...file('--cert', tls.cert),
    ...file('--key', tls.key),
    ...file('--sni', tls.serverName),
    ...(tls.verify === false ? ['--insecure'] : []),
  ];
}

function secretOf({ passwordFile, passwordCommand, passwordEnv }: NodeAccess): string | null {
  if (passwordFile !== undefined) return `"$(cat ${shellWord(passwordFile)})"`;
  if (passwordCommand !== undefined) return `"$(${passwordCommand})"`;
  return passwordEnv === undefined ? null : `"$${passwordEnv}"`;
}
