// The content of the config file as types. The file refers to secrets and never stores them. schema.ts checks the same
// form.

/** Where a secret is: a file, the first output line of a command, or an environment variable. */
export interface SecretRefs {
  passwordFile?: string;
  passwordCommand?: string;
  passwordEnv?: string;
}

export interface TlsEntry {
  ca?: string;
  cert?: string;
  key?: string;
  serverName?: string;
  /** false accepts any certificate: for tests only. */
  verify?: boolean;
}

export interface NodeEntry extends SecretRefs {
  id?: string;
  /** redis://, rediss://, unix://; may hold a user, never a password. */
  url: string;
  username?: string;
  tls?: TlsEntry;
  sentinel?: SecretRefs & { name: string; nodes: string[]; username?: string };
}

export interface ContextEntry extends SecretRefs {
  nodes: NodeEntry[];
  lane?: string;
  /** `<clusterId>.<generation>`. Read from the nodes when it is not given. */
  cluster?: string;
  username?: string;
  tls?: TlsEntry;
  /** Base URLs of sequencers' HTTP servers. */
  sequencers?: string[];
  settings?: Record<string, string | number | boolean>;
}

export interface ConfigFile {
  current?: string;
  contexts: Record<string, ContextEntry>;
  settings?: Record<string, string | number | boolean>;
}
