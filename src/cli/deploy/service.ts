// What one sequencer of this cluster needs, whatever starts it: its environment, and the files that hold secrets. A
// unit or manifest is made from this. It names where a secret is, and never holds one.
import { EXIT, SeqError } from '../../core/errors.js';
import type { ClusterSettings, NodeSettings } from '../cluster/settings.js';

/** A file that only the sequencer may read. */
interface SecretFile {
  /** Its name below the folder of secrets, e.g. `redis-password`. */
  name: string;
  /** The variable that names the file for `seq run`. */
  variable: string;
  /** Where it is on the host. */
  path: string;
  /** How it is made, when the context names no file. '' otherwise. */
  madeBy: string;
}

export interface Service {
  /** `seq`, or `seq-CONTEXT`. */
  name: string;
  /** Of the context. '' when nodes were named by hand. */
  context: string;
  lane: string;
  env: Record<string, string>;
  secrets: SecretFile[];
  nodes: number;
  http: { host: string; port: number; tls: boolean };
  /** The port of health and metrics, where the main one asks its callers for certificates. null: the main one. */
  adminPort: number | null;
}

export interface ServiceOptions {
  settings: ClusterSettings;
  /** The context's own settings that `seq run` reads, by flag name. */
  run: Record<string, string>;
  http: { host: string; port: number };
  /** On the host. '' when there is none. */
  files: { token: string; cert: string; key: string; ca: string; clientCa: string };
}

/** Where files are looked for that the context does not name. */
const SECRETS_FOLDER = '/etc/seq';

/** Throws SeqError 78 when the nodes need different credentials: the environment of a process has one of each. */
export function serviceOf({ settings, run, http, files }: ServiceOptions): Service {
  const [first, ...others] = settings.nodes;
  const credentials = (node: NodeSettings | undefined) => {
    const { username, tls, passwordFile, passwordCommand, passwordEnv, sentinel } = node ?? {};
    return JSON.stringify([username, tls, passwordFile, passwordCommand, passwordEnv, sentinel ?? null]);
  };
  const other = others.find((node) => credentials(node) !== credentials(first));
  if (other !== undefined || first?.sentinel !== undefined)
    throw new SeqError({
      code: 'CREDENTIALS_DIFFER',
      exit: EXIT.config,
      message:
        other === undefined
          ? 'the sentinels of a node have credentials of their own'
          : `${other.id ?? other.url} has other credentials than ${first?.id ?? first?.url}`,
      why: 'a service gets its credentials from its environment, and that has one user, password and certificate',
      changed: 'nothing',
      next: [
        'seq config show',
        'give all nodes the same user, or write a unit that runs seq run with its own SEQ_CONFIG',
      ],
    });
  const name = settings.context === null ? 'seq' : `seq-${settings.context.toLowerCase().replace(/[^a-z0-9-]/g, '-')}`;
  const tls = first?.tls ?? {};
  return {
    name,
    context: settings.context ?? '',
    lane: settings.lane,
    env: {
      SEQ_NODE: settings.nodes.map(({ id, url }) => (id === null ? url : `${id}=${url}`)).join(' '),
      ...(settings.lane === '' ? {} : { SEQ_LANE: settings.lane }),
      ...(first?.username === undefined ? {} : { SEQ_USERNAME: first.username }),
      ...(tls.serverName === undefined ? {} : { SEQ_TLS_SERVER_NAME: tls.serverName }),
      ...Object.fromEntries(
        Object.entries(run).map(([flag, value]) => [`SEQ_${flag.toUpperCase().replaceAll('-', '_')}`, value]),
      ),
    },
    secrets: [
      ...passwordOf(first),
      ...given('tls-ca', 'SEQ_TLS_CA', tls.ca),
      ...given('tls-cert', 'SEQ_TLS_CERT', tls.cert),
      ...given('tls-key', 'SEQ_TLS_KEY', tls.key),
      ...given('http-token', 'SEQ_HTTP_TOKEN_FILE', files.token),
      ...given('http-cert', 'SEQ_HTTP_CERT', files.cert),
      ...given('http-key', 'SEQ_HTTP_KEY', files.key),
      ...given('http-ca', 'SEQ_HTTP_CA', files.ca),
      ...given('http-client-ca', 'SEQ_HTTP_CLIENT_CA', files.clientCa),
    ],
    nodes: settings.nodes.length,
    http: { ...http, tls: files.cert !== '' },
    adminPort: files.clientCa === '' ? null : http.port + 1,
  };
}

function passwordOf(node: NodeSettings | undefined): SecretFile[] {
  const { passwordFile, passwordCommand, passwordEnv } = node ?? {};
  const secret = { name: 'redis-password', variable: 'SEQ_PASSWORD_FILE' };
  if (passwordFile !== undefined) return [{ ...secret, path: passwordFile, madeBy: '' }];
  const path = `${SECRETS_FOLDER}/redis-password`;
  // The command itself may hold a secret, so it is not repeated.
  if (passwordCommand !== undefined)
    return [{ ...secret, path, madeBy: "the first line that the context's passwordCommand prints" }];
  return passwordEnv === undefined ? [] : [{ ...secret, path, madeBy: `the value of the variable ${passwordEnv}` }];
}

function given(name: string, variable: string, path: string | undefined): SecretFile[] {
  return path === undefined || path === '' ? [] : [{ name, variable, path, madeBy: '' }];
}

/** The variables that name the secrets, when they are in that folder. */
export function secretVariables({ secrets }: Service, folder: string): Record<string, string> {
  return Object.fromEntries(secrets.map(({ name, variable }) => [variable, `${folder}/${name}`]));
}

/** Comment lines: how to make the files that the context does not name. */
export function secretComments({ secrets }: Service): string[] {
  return secrets.flatMap(({ path, madeBy }) => (madeBy === '' ? [] : [`# ${path} must hold ${madeBy}.`]));
}

/** What the process has to stop within: the release, requests under way, the sync of the store. */
export const STOP_SECONDS = 30;
