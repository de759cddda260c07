// The same sequencers in containers: a Compose file for one machine, and manifests for Kubernetes. Plain objects; the
// caller writes them as YAML.
import { secretVariables, STOP_SECONDS, type Service } from './service.js';

export interface ContainerOptions {
  image: string;
  sequencers: number;
  version: string;
}

const STORE = '/var/lib/seq';
const SECRETS = '/run/secrets';
const TMP = '/tmp';
const USER = 65532;

/** Asks this sequencer. `token`: every route but /livez needs it. */
function ask({ http, adminPort, secrets }: Service, path: string): string[] {
  const token = secrets.some(({ name }) => name === 'http-token');
  const headers = token
    ? `{authorization:'Bearer '+require('fs').readFileSync('${SECRETS}/http-token','utf8').split(/\\s/)[0]}`
    : '{}';
  const module = http.tls ? 'https' : 'http';
  // The certificate names the service, and this is the same container.
  const at = `host:'127.0.0.1',port:${adminPort ?? http.port},path:'${path}'`;
  const options = `{${at},rejectUnauthorized:false,headers:${headers}}`;
  return [
    'node',
    '-e',
    `require('${module}').get(${options},r=>process.exit(r.statusCode===200?0:1)).on('error',()=>process.exit(1))`,
  ];
}

/** Probes show no certificate. So they ask a port that wants none. */
function adminOn(host: string, { adminPort }: Service): Record<string, string> {
  return adminPort === null ? {} : { SEQ_ADMIN: `${host}:${adminPort}` };
}

/** All sequencers on one machine: it survives the end of a process, not of the machine. */
export function composeFile(service: Service, options: ContainerOptions): object {
  const ids = Array.from({ length: options.sequencers }, (_, at) => `seq-${String.fromCharCode(97 + at)}`);
  const published = service.http.port;
  return {
    name: service.name,
    services: Object.fromEntries(
      ids.map((id, at) => [
        id,
        {
          image: options.image,
          command: ['seqctl', 'run'],
          environment: {
            ...service.env,
            ...secretVariables(service, SECRETS),
            SEQ_ID: id,
            SEQ_STORE: STORE,
            SEQ_HTTP: `0.0.0.0:${service.http.port}`,
            ...adminOn('127.0.0.1', service),
            SEQ_ADVERTISE: `${service.http.tls ? 'https' : 'http'}://${id}:${service.http.port}`,
            XDG_CACHE_HOME: TMP,
          },
          ports: [`127.0.0.1:${published + at}:${service.http.port}`],
          volumes: [`${id}:${STORE}`],
          secrets: service.secrets.map(({ name }) => name),
          user: `${USER}:${USER}`,
          read_only: true,
          tmpfs: [TMP],
          cap_drop: ['ALL'],
          security_opt: ['no-new-privileges:true'],
          restart: 'unless-stopped',
          init: true,
          stop_grace_period: `${STOP_SECONDS}s`,
          healthcheck: {
            test: ['CMD', ...ask(service, '/livez')],
            interval: '10s',
            timeout: '5s',
            retries: 3,
            start_period: '30s',
          },
        },
      ]),
    ),
    volumes: Object.fromEntries(ids.map((id) => [id, {}])),
    ...(service.secrets.length === 0
      ? {}
      : { secrets: Object.fromEntries(service.secrets.map(({ name, path }) => [name, { file: path }])) }),
  };
}

/** How many pods may be away at once: a sequencer must lead, and another one must be able to take over. */
const budget = (sequencers: number) => Math.max(1, sequencers - 2);

/**
 * Manifests, in the order in which they are applied. `nodeLabels` select the pods of the Redis servers, when these run
 * in the same cluster.
 */
export function kubernetesManifests(
  service: Service,
  options: ContainerOptions & { namespace: string; nodeLabels: Record<string, string> },
): object[] {
  const { name, http, adminPort } = service;
  const labels = { 'app.kubernetes.io/name': 'seq', 'app.kubernetes.io/instance': name };
  const metadata = (suffix: string) => ({ name: `${name}${suffix}`, namespace: options.namespace, labels });
  const port = { name: 'http', port: http.port, targetPort: 'http' };
  const scheme = http.tls ? 'https' : 'http';
  const probe = (periodSeconds: number, failureThreshold: number) => ({
    periodSeconds,
    failureThreshold,
    timeoutSeconds: 5,
  });
  const container = {
    name: 'seq',
    image: options.image,
    command: ['seqctl', 'run'],
    envFrom: [{ configMapRef: { name } }],
    env: [
      { name: 'SEQ_ID', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
      { name: 'SEQ_ADVERTISE', value: `${scheme}://$(SEQ_ID).${name}-peers.${options.namespace}.svc:${http.port}` },
    ],
    ports: [
      { name: 'http', containerPort: http.port },
      ...(adminPort === null ? [] : [{ name: 'admin', containerPort: adminPort }]),
    ],
    startupProbe: { exec: { command: ask(service, '/livez') }, ...probe(5, 60) },
    livenessProbe: {
      httpGet: { path: '/livez', port: adminPort === null ? 'http' : 'admin', scheme: scheme.toUpperCase() },
      ...probe(10, 3),
    },
    readinessProbe: { exec: { command: ask(service, '/readyz') }, ...probe(5, 2) },
    // New requests stop coming first. Then SIGTERM drains it.
    lifecycle: { preStop: { exec: { command: ['sleep', '3'] } } },
    resources: { requests: { cpu: '500m', memory: '512Mi' }, limits: { memory: '2Gi' } },
    securityContext: {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    },
    volumeMounts: [
      { name: 'store', mountPath: STORE },
      { name: 'tmp', mountPath: TMP },
      ...(service.secrets.length === 0 ? [] : [{ name: 'secrets', mountPath: SECRETS, readOnly: true }]),
    ],
  };
  const pod = {
    terminationGracePeriodSeconds: STOP_SECONDS + 5,
    automountServiceAccountToken: false,
    enableServiceLinks: false,
    securityContext: {
      runAsNonRoot: true,
      runAsUser: USER,
      runAsGroup: USER,
      fsGroup: USER,
      seccompProfile: { type: 'RuntimeDefault' },
    },
    affinity: { podAntiAffinity: onDifferentHosts(labels) },
    containers: [container],
    volumes: [
      { name: 'tmp', emptyDir: {} },
      ...(service.secrets.length === 0
        ? []
        : [{ name: 'secrets', secret: { secretName: `${name}-secrets`, defaultMode: 0o440 } }]),
    ],
  };
  return [
    {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: metadata(''),
      data: {
        ...service.env,
        ...secretVariables(service, SECRETS),
        SEQ_HTTP: `0.0.0.0:${http.port}`,
        ...adminOn('0.0.0.0', service),
        SEQ_STORE: STORE,
        XDG_CACHE_HOME: TMP,
      },
    },
    // Each pod under its own name, also while it is not ready: followers forward to the leader.
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: metadata('-peers'),
      spec: { clusterIP: 'None', publishNotReadyAddresses: true, selector: labels, ports: [port] },
    },
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: metadata(''),
      spec: { selector: labels, ports: [port] },
    },
    {
      apiVersion: 'apps/v1',
      kind: 'StatefulSet',
      metadata: metadata(''),
      spec: {
        replicas: options.sequencers,
        serviceName: `${name}-peers`,
        podManagementPolicy: 'Parallel',
        updateStrategy: { type: 'RollingUpdate' },
        selector: { matchLabels: labels },
        template: { metadata: { labels }, spec: pod },
        volumeClaimTemplates: [
          {
            metadata: { name: 'store' },
            spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '20Gi' } } },
          },
        ],
      },
    },
    {
      apiVersion: 'policy/v1',
      kind: 'PodDisruptionBudget',
      metadata: metadata(''),
      spec: { maxUnavailable: budget(options.sequencers), selector: { matchLabels: labels } },
    },
    ...(Object.keys(options.nodeLabels).length === 0
      ? []
      : [
          {
            apiVersion: 'policy/v1',
            kind: 'PodDisruptionBudget',
            metadata: metadata('-nodes'),
            // A node that was restarted has to be admitted again. So one at a time, and none where none may be lost.
            spec: { maxUnavailable: service.nodes >= 3 ? 1 : 0, selector: { matchLabels: options.nodeLabels } },
          },
        ]),
  ];
}

/** Two of them on one host would fail together. */
function onDifferentHosts(matchLabels: Record<string, string>): object {
  return {
    requiredDuringSchedulingIgnoredDuringExecution: [
      { labelSelector: { matchLabels }, topologyKey: 'kubernetes.io/hostname' },
    ],
  };
}
