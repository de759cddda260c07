import { Args, Flags } from '@oclif/core';
import { SeqCommand } from '../../cli/command/base-command.js';
import type { Result } from '../../cli/present/result.js';
import { configPath, updateConfig } from '../../cli/config/file.js';
import { contextFromFlags } from '../../cli/config/context-edit.js';

export default class ContextSet extends SeqCommand {
  static override summary = 'Create a context, or change what is given of it';
  static override args = { name: Args.string({ required: true, description: 'context' }) };
  static override flags = {
    use: Flags.boolean({ description: 'also make it the current one' }),
    cluster: Flags.string({
      helpValue: 'ID.GENERATION',
      description: 'cluster identity ID.GENERATION (else read from the nodes)',
    }),
    username: Flags.string({ helpValue: 'USER', description: 'Redis ACL user' }),
    'password-file': Flags.string({
      helpValue: 'FILE',
      description: 'file that holds the password',
      exclusive: ['password-command', 'password-env'],
    }),
    'password-command': Flags.string({
      helpValue: 'COMMAND',
      description: 'command that prints the password',
      exclusive: ['password-env'],
    }),
    'password-env': Flags.string({ helpValue: 'NAME', description: 'environment variable that holds the password' }),
    'tls-ca': Flags.string({ helpValue: 'FILE', description: 'PEM file of the authority' }),
    'tls-cert': Flags.string({ helpValue: 'FILE', description: 'PEM file of the client certificate' }),
    'tls-key': Flags.string({ helpValue: 'FILE', description: 'PEM file of its key' }),
    'tls-server-name': Flags.string({ helpValue: 'NAME', description: 'name to expect in the certificate' }),
    sequencer: Flags.string({
      multiple: true,
      multipleNonGreedy: true,
      helpValue: 'URL',
      description: 'URL of a sequencer (repeat)',
    }),
    setting: Flags.string({
      multiple: true,
      multipleNonGreedy: true,
      helpValue: 'NAME=VALUE',
      description: 'a setting of this context (repeat)',
    }),
  };
  static override examples = [
    '<%= config.bin %> context set prod --node a=redis://10.0.0.1 --node b=redis://10.0.0.2 --node ' +
      'c=redis://10.0.0.3 --password-file /etc/seq/password --use',
  ];
  /** It makes the file that SEQ_CONFIG names. A file that cannot be read is refused before it is written. */
  static override needsConfig = false;
  protected readonly kind = 'context.set';

  protected async perform(): Promise<Result> {
    const { args, flags } = await this.parse(ContextSet);
    const path = configPath();
    let created = false;
    const config = await updateConfig(path, (before) => {
      created = before.contexts[args.name] === undefined;
      const entry = contextFromFlags(args.name, before.contexts[args.name], flags);
      const current = flags.use || (created && before.current === undefined) ? args.name : before.current;
      return {
        ...before,
        ...(current === undefined ? {} : { current }),
        contexts: { ...before.contexts, [args.name]: entry },
      };
    });
    const entry = config.contexts[args.name];
    return {
      data: { name: args.name, created, current: config.current === args.name, path, context: entry },
      facts: [
        [created ? 'created' : 'changed', args.name],
        ['nodes', entry?.nodes.length],
        ['current', config.current],
      ],
      next: [`seq status -c ${args.name}`],
    };
  }
}
