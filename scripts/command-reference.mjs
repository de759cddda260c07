// Makes two files from the manifest: docs/COMMANDS.md (every command with its arguments, flags and examples) and
// test/cli/interface.txt (the same, one line each). The build writes them and `--check` compares them, so that the
// documentation matches the program. Pure.
export const GROUPS = ['CLUSTER', 'OUTPUT', 'WATCH', 'CHANGE', ''];

/** In a table cell `|` ends the cell, and `<…>` would be read as HTML. */
const cell = (text) =>
  String(text ?? '')
    .replaceAll('|', '\\|')
    .replaceAll('<', '&lt;')
    .replaceAll('\n', ' ')
    .trim();
export const filled = (text) => text.replaceAll('<%= config.bin %>', 'seq').replaceAll('<%= command.id %>', '');
export const words = (id) => id.replaceAll(':', ' ');
const anchor = (id) => `seq-${id.replaceAll(':', '-')}`;
const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);

/** Flags that every command has, each in its most common form. */
function sharedFlags(commands) {
  const shared = {};
  for (const name of Object.keys(commands[0].flags)) {
    if (!commands.every((command) => command.flags[name])) continue;
    const forms = commands.map((command) => JSON.stringify(command.flags[name]));
    const count = (form) => forms.filter((other) => other === form).length;
    shared[name] = JSON.parse([...new Set(forms)].sort((a, b) => count(b) - count(a))[0]);
  }
  return shared;
}

/** What follows the flag's name: '' for a switch. */
export const flagValue = (flag) =>
  flag.type === 'boolean' ? '' : (flag.helpValue ?? (flag.options ? flag.options.join('|') : 'VALUE'));
export const flagName = (flag) => (flag.allowNo ? `--[no-]${flag.name}` : `--${flag.name}`);

/** What holds for the flag besides its description. */
export function flagNotes(flag) {
  const options =
    flag.options && flag.helpValue && !flag.options.every((option) => flag.description?.includes(option))
      ? `one of ${flag.options.join(', ')}`
      : '';
  return [
    flag.required ? 'required' : '',
    flag.default !== undefined && flag.default !== false ? `default ${flag.default}` : '',
    options,
    flag.dependsOn ? `needs ${flag.dependsOn.map((other) => `--${other}`).join(', ')}` : '',
    flag.exclusive ? `not with ${flag.exclusive.map((other) => `--${other}`).join(', ')}` : '',
  ].filter(Boolean);
}

function flagRow(flag) {
  const [value, notes] = [flagValue(flag), flagNotes(flag)];
  return (
    '| ' +
    `\`${flag.char ? `-${flag.char}, ` : ''}${flagName(flag)}${cell(value) === '' ? '' : ` ${cell(value).replaceAll('&lt;', '<')}`}\` ` +
    `| ${cell(flag.description)}${notes.length > 0 ? ` (${cell(notes.join('; '))})` : ''} |`
  );
}

function flagTable(flags) {
  const sorted = [...flags].sort((a, b) => GROUPS.indexOf(b.helpGroup ?? '') - GROUPS.indexOf(a.helpGroup ?? ''));
  return ['| flag | meaning |', '|---|---|', ...sorted.map(flagRow)];
}

export function usage(command) {
  if (command.usage) return filled([command.usage].flat()[0]);
  const args = Object.values(command.args).map((arg) =>
    arg.required ? arg.name.toUpperCase() : `[${arg.name.toUpperCase()}]`,
  );
  return [words(command.id), ...args, '[flags]', ...(command.id === 'run' ? ['[-- CMD …]'] : [])].join(' ');
}

function section(command, shared) {
  const own = Object.values(command.flags).filter((flag) => !flag.hidden && !same(flag, shared[flag.name]));
  const args = Object.values(command.args).filter((arg) => arg.description);
  return [
    `## seq ${words(command.id)}`,
    '',
    `${command.summary}.`,
    '',
    '```',
    `seq ${usage(command)}`,
    '```',
    '',
    ...(command.description ? block(command.description) : []),
    ...(args.length > 0
      ? [
          ...args.map(
            (arg) =>
              `- \`${arg.name.toUpperCase()}\`: ${arg.description}${arg.options ? ` (${arg.options.join(', ')})` : ''}`,
          ),
          '',
        ]
      : []),
    ...(own.length > 0 ? [...flagTable(own), ''] : []),
    ...(command.examples?.length > 0
      ? [
          '```sh',
          ...command.examples.map((example) => filled(typeof example === 'string' ? example : example.command)),
          '```',
          '',
        ]
      : []),
  ];
}

/** A description that is laid out in columns keeps its lines. Any other description becomes paragraphs. */
function block(description) {
  const text = filled(description);
  return /^ {2,}/m.test(text)
    ? ['```text', ...text.split('\n'), '```', '']
    : text
        .replaceAll('<', '&lt;')
        .split('\n')
        .flatMap((line) => [line, '']);
}

export function commandReference({ commands: byId }, topics) {
  const commands = Object.values(byId)
    .filter((command) => !command.hidden)
    .sort((a, b) => (a.id < b.id ? -1 : 1));
  const shared = sharedFlags(commands);
  return [
    '# Commands',
    '',
    'Made from `oclif.manifest.json` by `npm run build`; do not edit. What holds for all of them ' +
      '(exit codes, output, settings, confirmation) is in [OPERATING.md](OPERATING.md).',
    '',
    '| command | does |',
    '|---|---|',
    ...commands.map(
      (command) => `| [\`seq ${words(command.id)}\`](#${anchor(command.id)}) | ${cell(command.summary)} |`,
    ),
    '',
    '## On every command',
    '',
    ...flagTable(Object.values(shared)),
    '',
    'Topics: ',
    '',
    ...Object.entries(topics).map(([name, { description }]) => `- \`seq ${name} …\`: ${description}`),
    '',
    ...commands.flatMap((command) => section(command, shared)),
  ]
    .map((line) => line.trimEnd())
    .join('\n')
    .replace(/\n{3,}/g, '\n\n')
    .trimEnd()
    .concat('\n');
}

/** What scripts rely on, one line each: every command, argument and flag, with its letter and its values. */
export function interfaceLines({ commands }) {
  return Object.values(commands)
    .flatMap((command) => [
      words(command.id),
      ...Object.values(command.args).map(
        (arg) =>
          `${words(command.id)} ` +
          `${arg.required ? arg.name : `[${arg.name}]`}${arg.options ? ` ${arg.options.join('|')}` : ''}`,
      ),
      ...Object.values(command.flags).map(
        (flag) =>
          `${words(command.id)} ` +
          `--${flag.name}${flag.allowNo ? ` --no-${flag.name}` : ''}${flag.char ? ` -${flag.char}` : ''}${flag.type === 'boolean' ? '' : ` =${flag.options ? flag.options.join('|') : ''}`}${flag.multiple ? ' …' : ''}${flag.required ? ' required' : ''}`,
      ),
    ])
    .sort();
}

/**
 * The list with new lines added. A removed flag or command stays in the list, and a test reports it. Whoever removes
 * one on purpose also deletes its line.
 */
export function interfaceList(manifest, before) {
  return `${[...new Set([...before.split('\n').filter(Boolean), ...interfaceLines(manifest)])].sort().join('\n')}\n`;
}
