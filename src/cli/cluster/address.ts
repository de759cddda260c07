// How is one node reached? Turns its settings into an address, with the password and the certificates read. Never
// printed.
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { EXIT, SeqError } from '../../core/errors.js';
import { disabledShortcuts } from '../../core/shortcuts.js';
import type { SecretRefs } from '../config/config-types.js';
import type { NodeSettings } from './settings.js';

/** What is read again. A part that is absent stays as it was. */
interface Renewed extends Pick<NodeAddress, 'password' | 'tls'> {
  sentinelPassword?: string;
}

/** What a connection needs, with secrets and certificates already read. Never printed. */
export interface NodeAddress {
  id: string;
  url: string;
  username?: string;
  password?: string;
  tls?: { ca?: string; cert?: string; key?: string; serverName?: string; verify?: boolean };
  sentinel?: { name: string; nodes: string[]; username?: string; password?: string };
  /** Reads password and certificates again. */
  renew?: () => Promise<Renewed>;
  /** false: switched off by SEQ_DISABLE. */
  ownResp?: boolean;
  fastAppend?: boolean;
}

/** Reads the password that a reference points to. Removes a trailing line end. */
async function readSecret(refs: SecretRefs, env: NodeJS.ProcessEnv, what: string): Promise<string | undefined> {
  const failed = (how: string, why: string): SeqError =>
    new SeqError({
      code: 'SECRET_UNREADABLE',
      exit: EXIT.config,
      message: `${what}: the password could not be read ${how}`,
      why,
      changed: 'nothing',
      next: ['check that the file, command or variable gives the password'],
    });
  if (refs.passwordFile !== undefined) {
    const text = await readFile(refs.passwordFile, 'utf8').catch((error: NodeJS.ErrnoException) => {
      throw failed(`from ${refs.passwordFile}`, error.code ?? 'unreadable');
    });
    return text.replace(/\r?\n$/, '');
  }
  if (refs.passwordCommand !== undefined) {
    return new Promise((resolve, reject) => {
      execFile(
        '/bin/sh',
        ['-c', refs.passwordCommand as string],
        { timeout: 5000, maxBuffer: 64 * 1024 },
        (error, stdout) => {
          if (error) reject(failed('from its command', `it ended with ${error.code ?? error.signal ?? 'an error'}`));
          else resolve(stdout.split(/\r?\n/)[0] ?? '');
        },
      );
    });
  }
  if (refs.passwordEnv !== undefined) {
    const value = env[refs.passwordEnv];
    if (value === undefined || value === '') throw failed(`from ${refs.passwordEnv}`, 'the variable is not set');
    return value;
  }
  return undefined;
}

async function tlsOf(node: NodeSettings, id: string): Promise<NodeAddress['tls']> {
  if (!node.tls) return undefined;
  const pem = async (path: string | undefined) =>
    path === undefined
      ? undefined
      : readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
          throw new SeqError({
            code: 'CERTIFICATE_UNREADABLE',
            exit: EXIT.config,
            message: `node ${id}: ${path} could not be read`,
            why: error.code ?? 'unreadable',
            changed: 'nothing',
            next: [`check that ${path} exists and may be read`],
          });
        });
  const [ca, cert, key] = await Promise.all([pem(node.tls.ca), pem(node.tls.cert), pem(node.tls.key)]);
  return {
    ...(ca && { ca }),
    ...(cert && { cert }),
    ...(key && { key }),
    ...(node.tls.serverName && { serverName: node.tls.serverName }),
    ...(node.tls.verify !== undefined && { verify: node.tls.verify }),
  };
}

/** A command that gives the password is not run more often than this: a node that is down is tried every second. */
const COMMAND_EVERY_MS = 5000;

/** Undefined for a node without password and certificates. */
function renewalOf(node: NodeSettings, id: string, env: NodeJS.ProcessEnv): NodeAddress['renew'] {
  const changes = ({ passwordFile, passwordCommand }: SecretRefs): boolean => Boolean(passwordFile ?? passwordCommand);
  if (!changes(node) && !node.tls && !(node.sentinel && changes(node.sentinel))) return undefined;
  const password = secretReader(node, env, `node ${id}`);
  const ofSentinels = node.sentinel
    ? secretReader(node.sentinel, env, `sentinels of node ${id}`)
    : async () => undefined;
  return async () => {
    const [secret, tls, sentinelPassword] = await Promise.all([password(), tlsOf(node, id), ofSentinels()]);
    return {
      ...(secret === undefined ? {} : { password: secret }),
      ...(tls === undefined ? {} : { tls }),
      ...(sentinelPassword === undefined ? {} : { sentinelPassword }),
    };
  };
}

function secretReader(refs: SecretRefs, env: NodeJS.ProcessEnv, what: string): () => Promise<string | undefined> {
  let known: { at: number; password: Promise<string | undefined> } | undefined;
  return () => {
    if (refs.passwordCommand === undefined || refs.passwordFile !== undefined) return readSecret(refs, env, what);
    if (known === undefined || performance.now() - known.at >= COMMAND_EVERY_MS)
      known = { at: performance.now(), password: readSecret(refs, env, what) };
    return known.password;
  };
}

export async function addressOf(node: NodeSettings, id: string, env: NodeJS.ProcessEnv): Promise<NodeAddress> {
  const address: NodeAddress = { id, url: node.url };
  if (node.username) address.username = node.username;
  const password = await readSecret(node, env, `node ${id}`);
  if (password !== undefined) address.password = password;
  const renew = renewalOf(node, id, env);
  if (renew !== undefined) address.renew = renew;
  const disabled = disabledShortcuts(env['SEQ_DISABLE']);
  if (disabled.has('own-resp')) address.ownResp = false;
  if (disabled.has('fast-append')) address.fastAppend = false;
  const tls = await tlsOf(node, id);
  if (tls !== undefined) address.tls = tls;
  const watched = /^sentinel:\/\/([^/]+)\/([^/]+)(\/\d+)?$/.exec(node.url);
  if (watched) {
    const nodes = (watched[1] as string).split(',');
    address.url = `redis://${nodes[0]}${watched[3] ?? ''}`;
    address.sentinel = { name: watched[2] as string, nodes };
  }
  if (node.sentinel) {
    const { name, nodes, username } = node.sentinel;
    const secret = await readSecret(node.sentinel, env, `sentinels of node ${id}`);
    address.sentinel = {
      name,
      nodes,
      ...(username && { username }),
      ...(secret !== undefined && { password: secret }),
    };
  }
  return address;
}
