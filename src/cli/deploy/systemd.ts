// A systemd unit for one sequencer of this cluster, on the host where it is printed. The sequencer says when it serves,
// and from then on that its main loop turns (sd_notify). Secrets come as credentials, so the unit runs under a user of
// its own that may read nothing else.
import { secretComments, secretVariables, STOP_SECONDS, type Service } from './service.js';

export interface SystemdOptions {
  /** The program and its first argument, as absolute paths. */
  program: readonly string[];
  /** '' for the host name. */
  id: string;
  version: string;
}

/** What a person must look at first. Starting again changes none of it. */
const NO_RESTART = '64 76 78';

const HARDENING = [
  'DynamicUser=yes',
  'UMask=0077',
  'NoNewPrivileges=yes',
  'CapabilityBoundingSet=',
  'AmbientCapabilities=',
  'PrivateDevices=yes',
  'PrivateTmp=yes',
  'PrivateUsers=yes',
  'PrivateIPC=yes',
  'ProtectSystem=strict',
  'ProtectClock=yes',
  'ProtectControlGroups=yes',
  'ProtectHostname=yes',
  'ProtectKernelLogs=yes',
  'ProtectKernelModules=yes',
  'ProtectKernelTunables=yes',
  'ProtectProc=invisible',
  'ProcSubset=pid',
  'RemoveIPC=yes',
  'RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX',
  'RestrictNamespaces=yes',
  'RestrictRealtime=yes',
  'RestrictSUIDSGID=yes',
  'LockPersonality=yes',
  'SystemCallArchitectures=native',
  'SystemCallFilter=@system-service',
  'SystemCallFilter=~@privileged @resources',
  'SystemCallErrorNumber=EPERM',
  // MemoryDenyWriteExecute is missing: the JavaScript engine writes the code that it runs.
];

export function systemdUnit(service: Service, options: SystemdOptions): string {
  const { name, context, lane, http } = service;
  const of = [context === '' ? '' : ` of ${context}`, lane === '' ? '' : `, lane ${lane}`].join('');
  const env: Record<string, string> = {
    ...service.env,
    SEQ_HTTP: `${http.host}:${http.port}`,
  };
  const home = options.program.some((path) => /^\/(home|root)\//.test(path));
  const lines = [
    `# /etc/systemd/system/${name}.service, made by seq ${options.version}: seq service print systemd`,
    '# One sequencer. A cluster has two or three, each on a host of its own.',
    ...secretComments(service),
    '',
    '[Unit]',
    `Description=Sequencer${of}`,
    'Documentation=man:seq-run(1)',
    'Wants=network-online.target',
    'After=network-online.target',
    '# It is started again for as long as it takes.',
    'StartLimitIntervalSec=0',
    '',
    '[Service]',
    '# READY=1 comes when it serves. Until then it may wait for a quorum of nodes, however long.',
    'Type=notify',
    'NotifyAccess=all',
    'TimeoutStartSec=infinity',
    'WatchdogSec=30s',
    `ExecStart=${[...options.program, 'run'].map(word).join(' ')}`,
    ...Object.entries(env).map(([key, value]) => `Environment=${word(`${key}=${value}`)}`),
    // Specifiers: %S and %C are the folders for state and cache, %d is the folder of credentials, %H is the host name.
    `Environment=SEQ_ID=${options.id === '' ? '%H' : word(options.id)}`,
    `Environment=SEQ_STORE=%S/${name}/store`,
    `Environment=XDG_CACHE_HOME=%C/${name}`,
    ...Object.entries(secretVariables(service, '%d')).map(([key, value]) => `Environment=${key}=${value}`),
    ...service.secrets.map((secret) => `LoadCredential=${secret.name}:${secret.path.replaceAll('%', '%%')}`),
    `StateDirectory=${name}`,
    `CacheDirectory=${name}`,
    'StateDirectoryMode=0700',
    'Restart=always',
    'RestartSec=1s',
    `RestartPreventExitStatus=${NO_RESTART}`,
    '# SIGTERM drains it: the lock is released, what waits is passed on, the store is synced.',
    'KillSignal=SIGTERM',
    'KillMode=mixed',
    `TimeoutStopSec=${STOP_SECONDS}s`,
    'OOMScoreAdjust=-500',
    'LimitNOFILE=8192',
    ...HARDENING,
    home ? 'ProtectHome=read-only' : 'ProtectHome=yes',
    '',
    '[Install]',
    'WantedBy=multi-user.target',
  ];
  return `${lines.join('\n')}\n`;
}

/** One word of a unit file: `%` begins a specifier, and quotes hold white space together. */
function word(text: string): string {
  const plain = text.replaceAll('%', '%%');
  return /^[\w@%+=:,./-]+$/.test(plain) ? plain : `"${plain.replace(/[\\"]/g, '\\$&').replaceAll('$', '$$$$')}"`;
}
