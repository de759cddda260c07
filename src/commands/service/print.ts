import { realpathSync } from 'node:fs';
import { join } from 'node:path';
import { Args, Flags } from '@oclif/core';
import { SeqCommand } from '../../cli/command/base-command.js';
import { runFlagsOf } from '../../cli/compose/run-flags.js';
import { serviceOf, secretComments, type Service } from '../../cli/deploy/service.js';
import type { Result } from '../../cli/present/result.js';
import { usageError } from '../../cli/support/failure.js';
import { positiveFlag } from '../../cli/support/flags.js';
import { checkListen, parseListen } from '../../core/serve/listen.js';

const KINDS = ['systemd', 'compose', 'kubernetes'] as const;

export default class ServicePrint extends SeqCommand {
  static override summary =
    'Print a systemd unit, a Compose file or Kubernetes manifests for sequencers of this cluster';
  static override description = [
    'Made from the context in use: nodes, lane, timing, user, and where passwords and certificates are.',
    'Secrets are named, never printed: systemd loads them as credentials, containers get them as files.',
    'The unit is for the host where it is printed. docs/DEPLOYING.md goes through each of the three.',
  ].join('\n');
  static override examples = [
    '<%= config.bin %> service print systemd -c prod --http-token-file /etc/seq/token --http 10.0.0.11:7070',
    '<%= config.bin %> service print kubernetes -c prod --image seqctl:0.1.0 --http-token-file token',
  ];
  static override args = {
    kind: Args.string({ required: true, options: [...KINDS], description: 'systemd, compose or kubernetes' }),
  };
  static override flags = {
    id: Flags.string({ helpValue: 'ID', description: 'systemd: name of the sequencer (default: the host name)' }),
    http: Flags.string({ helpValue: 'HOST:PORT', description: 'where it serves (127.0.0.1:7070)' }),
    'http-token-file': Flags.string({ helpValue: 'FILE', description: 'bearer tokens, on the host' }),
    'http-cert': Flags.string({ helpValue: 'FILE', dependsOn: ['http-key'], description: 'certificate, on the host' }),
    'http-key': Flags.string({ helpValue: 'FILE', dependsOn: ['http-cert'], description: 'its key, on the host' }),
    'http-ca': Flags.string({ helpValue: 'FILE', description: "authority of the other sequencers' certificates" }),
    'http-client-ca': Flags.string({
      helpValue: 'FILE',
      dependsOn: ['http-cert'],
      description: "authority of callers' certificates: a caller without one is refused",
    }),
    image: Flags.string({ helpValue: 'IMAGE', description: 'containers: image that has the package installed' }),
    sequencers: positiveFlag({ description: 'containers: how many (compose 2, kubernetes 3)' }),
    namespace: Flags.string({ default: 'default', helpValue: 'NAME', description: 'kubernetes: namespace' }),
    'node-labels': Flags.string({
      helpValue: 'KEY=VALUE',
      multiple: true,
      multipleNonGreedy: true,
      description: 'kubernetes: labels of the pods of the Redis servers, for their disruption budget (repeat)',
    }),
  };
  protected readonly kind = 'service.print';

  protected async perform(): Promise<Result> {
    const { args, flags } = await this.parse(ServicePrint);
    const around = await this.surroundings();
    const listen = parseListen(flags.http ?? '127.0.0.1:7070');
    const files = {
      token: flags['http-token-file'] ?? '',
      cert: flags['http-cert'] ?? '',
      key: flags['http-key'] ?? '',
      ca: flags['http-ca'] ?? '',
      clientCa: flags['http-client-ca'] ?? '',
    };
    // A container serves beyond its own loopback, so it needs what every such sequencer needs.
    const reached = args.kind === 'systemd' ? listen : { ...listen, host: '0.0.0.0' };
    checkListen(reached, { token: files.token !== '', tls: files.cert !== '' });
    const service = serviceOf({
      settings: around.clusterSettings(),
      run: runFlagsOf(around.sources),
      http: { host: listen.host.includes(':') ? `[${listen.host}]` : listen.host, port: listen.port },
      files,
    });
    const text = await this.textOf(args.kind as (typeof KINDS)[number], service, flags);
    return { data: { kind: args.kind, name: service.name, text }, text, asIs: true };
  }

  private async textOf(
    kind: (typeof KINDS)[number],
    service: Service,
    flags: { id?: string; image?: string; sequencers?: number; namespace: string; 'node-labels'?: string[] },
  ): Promise<string> {
    const { version, root } = this.config;
    if (kind === 'systemd') {
      const { systemdUnit } = await import('../../cli/deploy/systemd.js');
      const program = [process.execPath, realpathSync(join(root, 'bin', 'run.js'))];
      return systemdUnit(service, { program, id: flags.id ?? '', version });
    }
    const [{ composeFile, kubernetesManifests }, { stringify }] = await Promise.all([
      import('../../cli/deploy/containers.js'),
      import('../../cli/config/yaml.js'),
    ]);
    const options = { image: flags.image ?? `seqctl:${version}`, version };
    const yaml = (document: object) => stringify(document, { lineWidth: 0, aliasDuplicateObjects: false });
    const made = `# Made by seq ${version}: seq service print ${kind}`;
    if (kind === 'compose') {
      const document = composeFile(service, { ...options, sequencers: flags.sequencers ?? 2 });
      return [made, ...secretComments(service), yaml(document)].join('\n');
    }
    const manifests = kubernetesManifests(service, {
      ...options,
      sequencers: flags.sequencers ?? 3,
      namespace: flags.namespace,
      nodeLabels: labelsOf(flags['node-labels'] ?? []),
    });
    const files = service.secrets.map(({ name, path }) => `--from-file=${name}=${path}`).join(' ');
    const secret =
      files === ''
        ? []
        : [
            '# The secret is not part of this file. Make it first:',
            `# kubectl create secret generic ${service.name}-secrets -n ${flags.namespace} ${files}`,
          ];
    return [made, ...secretComments(service), ...secret, manifests.map(yaml).join('---\n')].join('\n');
  }
}

function labelsOf(texts: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    texts.map((text) => {
      const [, key, value] = /^([^=]+)=([^=]*)$/.exec(text) ?? [];
      if (key === undefined || value === undefined)
        throw usageError(`--node-labels ${JSON.stringify(text)} is not KEY=VALUE`, ['--node-labels app=redis']);
      return [key, value];
    }),
  );
}
