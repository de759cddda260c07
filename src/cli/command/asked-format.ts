// Reads from the raw arguments which machine format was asked for. It is needed when parsing failed and the answer must
// still be one document.
export type MachineFormat = 'json' | 'yaml' | 'ndjson';

export function askedFormat(argv: readonly string[], env: NodeJS.ProcessEnv): MachineFormat | null {
  const end = argv.indexOf('--');
  const own = end < 0 ? argv : argv.slice(0, end);
  let asked: string | undefined;
  own.forEach((word, at) => {
    if (word === '--json') asked = 'json';
    else if (word === '-o' || word === '--output') asked = own[at + 1];
    else if (word.startsWith('--output=')) asked = word.slice('--output='.length);
    else if (/^-o./.test(word)) asked = word.slice(2).replace(/^=/, '');
  });
  asked ??= env['SEQ_OUTPUT'];
  return asked === 'json' || asked === 'yaml' || asked === 'ndjson' ? asked : null;
}
