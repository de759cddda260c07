// Does a command's JSON answer fit the schema in the package? schemas/<kind>.json describes `data`.
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Ajv } from 'ajv';

/** What does not fit, or ''. */
export function schemaProblems(document: { kind: string; data: unknown }): string {
  const path = fileURLToPath(new URL(`../../schemas/${document.kind}.json`, import.meta.url));
  const ajv = new Ajv({ allErrors: true, allowUnionTypes: true, strict: false });
  return ajv.validate(JSON.parse(readFileSync(path, 'utf8')) as object, document.data) ? '' : ajv.errorsText();
}
