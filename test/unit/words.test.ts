// The words that are retired stay away: docs/PROTOCOL.md section 1 has the table, this test reads names and prose for them.
// Names are the identifiers and file names of src/, test/, bench/ and scripts/, cut into their words. Prose is the documents
// and the comments and texts (messages, help) of src/, and the comments of lua/. Everyday words that are retired in one
// sense only are forbidden in names alone.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import ts from 'typescript';
import { describe, expect, test } from 'vitest';

const root = resolve(import.meta.dirname, '../..');
const GENERATED = new Set(['docs/COMMANDS.md']);
const TABLE = /### Retired words\n[\s\S]*?(?=\n## )/;

/** Names that keep a retired word, each with its reason. */
const NAMES_THAT_STAY = new Map([
  ['observe', "prom-client's method of a histogram"],
  ['readinessProbe', 'a field of a Kubernetes manifest'],
  ['looksLikeSeqError', 'how a value appears, not a question to a node'],
]);

interface Retired {
  word: string;
  standard: string;
  /** The folder in whose names it is forbidden: '' is all of them, null none. */
  names: string | null;
  prose: boolean;
  forms: ReadonlySet<string>;
  inProse: RegExp;
}

function formsOf(word: string): string[] {
  const stem = word.replace(/e$/, '');
  return [
    word,
    ...['s', 'es', 'd', 'ed', 'ing', 'able'].map((end) => word + end),
    ...['ing', 'al', 'able', 'ies'].map((end) => stem.replace(end === 'ies' ? /y$/ : /$/, '') + end),
  ];
}

function retiredWords(protocol: string): Retired[] {
  return [...(TABLE.exec(protocol)?.[0] ?? '').matchAll(/^\| ([a-z' ]+) \| ([^|]+) \|([^|]*)\|$/gm)]
    .map(([, word = '', standard = '', where = '']) => ({ word, standard, where: where.trim() }))
    .filter(({ word }) => word !== 'retired')
    .map(({ word, standard, where }) => {
      const forms = word.includes(' ') ? [word] : formsOf(word);
      return {
        word,
        standard,
        names: where === 'prose' ? null : where.replace(/^names( in )?/, ''),
        prose: !where.startsWith('names'),
        forms: new Set(forms),
        // A phrase may go on in the next line of a comment.
        inProse: new RegExp(`\\b(?:${forms.join('|').replaceAll(' ', '[\\s/*-]+')})\\b`, 'gi'),
      };
    });
}

const retired = retiredWords(readFileSync(join(root, 'docs/PROTOCOL.md'), 'utf8'));
const anyForm = new RegExp(retired.map(({ word }) => formsOf(word)[0]!.replace(/[ey]$/, '')).join('|'), 'i');

/** `readHTTPBody_v2` → read, http, body, v2. */
function wordsOf(name: string): string[] {
  return name
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .replace(/([A-Z]+)([A-Z][a-z])/g, '$1 $2')
    .split(/[^A-Za-z0-9]+/)
    .map((word) => word.toLowerCase());
}

function inName(name: string, file: string): Retired[] {
  if (NAMES_THAT_STAY.has(name)) return [];
  const words = wordsOf(name);
  return retired.filter(
    ({ names, forms }) => names !== null && file.startsWith(names) && words.some((word) => forms.has(word)),
  );
}

interface Piece {
  text: string;
  line: number;
}

function inProse({ text, line }: Piece, file: string): string[] {
  return retired
    .filter(({ prose }) => prose)
    .flatMap(({ inProse: pattern, standard }) =>
      [...text.matchAll(pattern)].map((match) => {
        const at = line + text.slice(0, match.index).split('\n').length - 1;
        return `${file}:${at}: "${match[0]}" is retired: ${standard}`;
      }),
    );
}

/**
 * A text of the program, e.g. `'a' + 'b'` or a template, as one piece: a phrase may be cut between two literals. undefined
 * for everything else, and for module names.
 */
function textOf(node: ts.Node): string | undefined {
  if (ts.isSourceFile(node) || ts.isImportDeclaration(node.parent) || ts.isExportDeclaration(node.parent))
    return undefined;
  if (ts.isStringLiteralLike(node) || ts.isJsxText(node)) return node.text;
  if (ts.isTemplateExpression(node))
    return node.head.text + node.templateSpans.map(({ literal }) => `…${literal.text}`).join('');
  if (!ts.isBinaryExpression(node) || node.operatorToken.kind !== ts.SyntaxKind.PlusToken) return undefined;
  const [left, right] = [textOf(node.left), textOf(node.right)];
  return left === undefined && right === undefined ? undefined : `${left ?? '…'}${right ?? '…'}`;
}

/** Identifiers, comments and texts of a source file. A comment stands before or behind some token. */
function read(file: string, text: string): { names: Piece[]; comments: Piece[]; texts: Piece[] } {
  const kind = file.endsWith('x') ? ts.ScriptKind.TSX : ts.ScriptKind.TS;
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true, kind);
  const lineAt = (pos: number): number => source.getLineAndCharacterOfPosition(pos).line + 1;
  const names: Piece[] = [];
  const comments = new Map<number, Piece>();
  const texts: Piece[] = [];
  const visit = (node: ts.Node, inText = false): void => {
    const own = inText ? undefined : textOf(node);
    if (own !== undefined) texts.push({ text: own, line: lineAt(node.getStart(source)) });
    if (ts.isIdentifier(node) || ts.isPrivateIdentifier(node))
      names.push({ text: node.text, line: lineAt(node.getStart(source)) });
    for (const range of [
      ...(ts.getLeadingCommentRanges(text, node.pos) ?? []),
      ...(ts.getTrailingCommentRanges(text, node.pos) ?? []),
    ])
      comments.set(range.pos, { text: text.slice(range.pos, range.end), line: lineAt(range.pos) });
    // What stands inside a template's ${…} is a text of its own.
    const partOfText = ts.isBinaryExpression(node) && (inText || own !== undefined);
    for (const child of node.getChildren(source)) visit(child, partOfText);
  };
  visit(source);
  return { names, comments: [...comments.values()], texts };
}

function files(folder: string, ends: RegExp): string[] {
  return readdirSync(join(root, folder), { recursive: true })
    .map((name) => join(folder, String(name)))
    .filter((file) => ends.test(file));
}

function problemsOfSource(file: string): string[] {
  const text = readFileSync(join(root, file), 'utf8');
  const ofFile = inName(basename(file), file).map(
    ({ word, standard }) => `${file}: its name has "${word}": ${standard}`,
  );
  if (!anyForm.test(text)) return ofFile;
  const { names, comments, texts } = read(file, text);
  return [
    ...ofFile,
    ...new Set(
      names.flatMap(({ text: name, line }) =>
        inName(name, file).map(({ word, standard }) => `${file}:${line}: ${name} has "${word}": ${standard}`),
      ),
    ),
    ...(file.startsWith('src/') ? [...comments, ...texts].flatMap((piece) => inProse(piece, file)) : []),
  ];
}

describe('words', () => {
  test('table: PROTOCOL.md section 1 names them, with what stands for each', () => {
    expect(retired.length).toBeGreaterThan(20);
    expect(retired.filter(({ standard }) => standard.trim() === '')).toEqual([]);
  });

  test.each([
    ['tenureOf', 'src/x.ts', 'tenure'],
    ['REIGN_MS', 'test/x.ts', 'reign'],
    ['mended', 'src/x.ts', 'mend'],
    ['dropProductions', 'src/x.ts', 'production'],
    ['recommend', 'src/x.ts', undefined],
    ['theirs', 'src/x.ts', undefined],
    ['lookAtNodes', 'src/x.ts', 'look'],
    ['looks', 'test/x.ts', undefined],
    ['observe', 'src/x.ts', undefined],
  ])('checker: the name %s in %s → %s', (name, file, word) => {
    expect(inName(name, file)[0]?.word).toBe(word);
  });

  test.each([
    ['it mends the stream', 1],
    ['it recommends a stream', 0],
    ['// it holds\n// back for 3 s', 1],
    ['a look at the nodes', 0],
  ])('checker: the sentence %j → %i', (text, count) => {
    expect(inProse({ text, line: 1 }, 'x')).toHaveLength(count);
  });

  test('checker: a phrase that is cut between two literals of a message → found once', () => {
    const { texts } = read('x.ts', "import './halt.js';\nconst a = 1;\nsay('below the retained ' + `window of ${a}`);");
    expect(texts.flatMap((piece) => inProse(piece, 'x.ts'))).toEqual([
      'x.ts:3: "retained window" is retired: retained range',
    ]);
  });

  test.each(['src', 'test', 'bench', 'scripts'])('names and comments: %s → no retired word', (folder) => {
    expect(files(folder, /\.(tsx?|mjs)$/).flatMap(problemsOfSource)).toEqual([]);
  });

  test('lua: comments → no retired word', () => {
    const wrong = files('lua', /\.lua$/).flatMap((file) =>
      readFileSync(join(root, file), 'utf8')
        .split('\n')
        .flatMap((line, at) => inProse({ text: /--(.*)/.exec(line)?.[1] ?? '', line: at + 1 }, file)),
    );
    expect(wrong).toEqual([]);
  });

  test.each(
    [...['README.md', 'CONTRIBUTING.md', 'CHANGELOG.md', 'examples/README.md'], ...files('docs', /\.md$/)].filter(
      (file) => existsSync(join(root, file)) && !GENERATED.has(file),
    ),
  )('prose: %s → no retired word', (file) => {
    const text = readFileSync(join(root, file), 'utf8')
      .replace(TABLE, (table) => table.replace(/[^\n]/g, ''))
      .replace(/`[^`\n]*`/g, (code) => ' '.repeat(code.length));
    expect(inProse({ text, line: 1 }, file)).toEqual([]);
  });
});
