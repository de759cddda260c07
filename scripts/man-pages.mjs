// Makes the manual pages from the manifest: man/seq.1, and man/seq-COMMAND.1 for each command. The build writes them;
// they are no part of the repository, as dist/ is none. package.json names each of them. Pure.
import { GROUPS, filled, flagName, flagNotes, flagValue, usage, words } from './command-reference.mjs';

const HEADINGS = { '': 'OPTIONS', CLUSTER: 'CLUSTER', OUTPUT: 'OUTPUT', WATCH: 'REPEATING', CHANGE: 'CHANGING' };

/** A backslash, signs that typesetting changes, signs beyond ASCII, and a line that would be read as a request. */
const plain = (text) =>
  String(text)
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replaceAll("'", '\\(aq')
    .replaceAll('`', '\\(ga')
    .replaceAll('^', '\\(ha')
    .replaceAll('~', '\\(ti')
    .replace(/[^\x00-\x7e]/gu, (sign) => `\\[u${sign.codePointAt(0)?.toString(16).toUpperCase().padStart(4, '0')}]`)
    .replace(/^(?=[.'])/gm, '\\&');
const bold = (text) => `\\fB${plain(text)}\\fR`;
const italic = (text) => `\\fI${plain(text)}\\fR`;
const heading = (text) => `.SH ${text.includes(' ') ? `"${text}"` : text}`;

export const pageName = (id) => `seq-${id.replaceAll(':', '-')}`;
const visible = ({ commands }) =>
  Object.values(commands)
    .filter((command) => !command.hidden)
    .sort((a, b) => (a.id < b.id ? -1 : 1));

/** The paths that package.json names as `man`, in order. */
export const manPaths = (manifest) => ['seq', ...visible(manifest).map(({ id }) => pageName(id))].map(manPath);
const manPath = (name) => `man/${name}.1`;

function top(name, summary, version) {
  return [
    `.\\" Made from oclif.manifest.json by the build.`,
    `.TH ${name.toUpperCase().replaceAll('-', '\\-')} 1 "" "seqctl ${plain(version)}" "Manual of seq"`,
    heading('NAME'),
    `${plain(name)} \\- ${plain(summary)}`,
  ];
}

/** Lines that are laid out in columns stay as they are. Others are paragraphs. */
function prose(text) {
  const lines = filled(text).split('\n');
  return /^ {2,}/m.test(text)
    ? ['.nf', ...lines.map((line) => (line === '' ? '.sp' : plain(line))), '.fi']
    : lines.filter((line) => line !== '').flatMap((line) => ['.PP', plain(line)]);
}

function flagEntry(flag) {
  const [value, notes] = [flagValue(flag), flagNotes(flag)];
  const names = [...(flag.char ? [`-${flag.char}`] : []), flagName(flag)].map(bold).join(', ');
  const meaning = `${flag.description ?? ''}${notes.length > 0 ? ` (${notes.join('; ')})` : ''}`.trim();
  return ['.TP', `${names}${value === '' ? '' : ` ${italic(value)}`}`, plain(filled(meaning).replaceAll('\n', ' '))];
}

function flagSections(flags) {
  const groups = ['', ...GROUPS.filter((group) => group !== '')];
  return groups.flatMap((group) => {
    const own = flags.filter((flag) => !flag.hidden && (flag.helpGroup ?? '') === group);
    return own.length === 0 ? [] : [heading(HEADINGS[group] ?? group), ...own.flatMap(flagEntry)];
  });
}

function argSection(args) {
  const told = args.filter((arg) => arg.description);
  if (told.length === 0) return [];
  return [
    heading('ARGUMENTS'),
    ...told.flatMap((arg) => [
      '.TP',
      italic(arg.name.toUpperCase()),
      plain(`${arg.description}${arg.options ? ` (${arg.options.join(', ')})` : ''}`),
    ]),
  ];
}

function exampleSection(examples) {
  if (!examples || examples.length === 0) return [];
  const lines = examples.map((example) => filled(typeof example === 'string' ? example : example.command));
  return [heading('EXAMPLES'), '.nf', ...lines.flatMap((line) => line.split('\n').map(plain)), '.fi'];
}

/** `.BR name (1)`, with a comma after all but the last. */
const references = (names) => names.map((name, at) => `.BR ${plain(name)} (1)${at < names.length - 1 ? ',' : ''}`);

function commandPage(command, version, all) {
  const topic = command.id.split(':')[0];
  const kin = all.filter(({ id }) => id !== command.id && id.split(':')[0] === topic).map(({ id }) => pageName(id));
  return [
    ...top(pageName(command.id), command.summary, version),
    heading('SYNOPSIS'),
    `${bold(`seq ${words(command.id)}`)}${plain(usage(command).slice(words(command.id).length))}`,
    heading('DESCRIPTION'),
    plain(`${command.summary}.`),
    ...(command.description ? prose(command.description) : []),
    ...argSection(Object.values(command.args)),
    ...flagSections(Object.values(command.flags)),
    ...exampleSection(command.examples),
    heading('SEE ALSO'),
    ...references(['seq', ...kin]),
  ];
}

function firstPage(all, topics, { version, description }) {
  return [
    ...top('seq', 'a highly available sequencer over a quorum of plain Redis servers', version),
    heading('SYNOPSIS'),
    `${bold('seq')} ${italic('COMMAND')} [${italic('FLAGS')}]`,
    heading('DESCRIPTION'),
    plain(`${description}.`),
    '.PP',
    `The same program is also called ${bold('seqctl')}.`,
    `With numbers as arguments it runs the program of that name that prints numbers:`,
    `${bold('man -a seq')} shows the pages of both.`,
    heading('COMMANDS'),
    ...all.flatMap(({ id, summary }) => ['.TP', `.BR ${plain(pageName(id))} (1)`, plain(`${summary}.`)]),
    heading('TOPICS'),
    ...Object.entries(topics).flatMap(([name, topic]) => ['.TP', bold(`seq ${name}`), plain(`${topic.description}.`)]),
    heading('EXIT STATUS'),
    `0 is success. ${bold('seq explain')} ${italic('CODE')} tells what an error means and what to do about it.`,
    heading('SEE ALSO'),
    `${bold('seq COMMAND --help')}, and the folder docs of the package.`,
  ];
}

/** Path below the package → text, for every page. */
export function manPages(manifest, topics, { version, description }) {
  const all = visible(manifest);
  const text = (lines) => `${lines.join('\n')}\n`;
  const pages = new Map([[manPath('seq'), text(firstPage(all, topics, { version, description }))]]);
  for (const command of all) pages.set(manPath(pageName(command.id)), text(commandPage(command, version, all)));
  return pages;
}
