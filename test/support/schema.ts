// Holds a command's JSON answer to the schema that ships with the package (schemas/<kind>.json describes `data`).
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Ajv } from 'ajv';

/** What is wrong with it, '' when nothing is. */
export function schemaProblems(document: { kind: string; data: unknown }): string {
  const path = fileURLToPath(new URL(`../../schemas/${document.kind}.json`, import.meta.url));
  const ajv = new Ajv({ allErrors: true, allowUnionTypes: true, strict: false });
  return ajv.validate(JSON.parse(readFileSync(path, 'utf8')) as object, document.data) ? '' : ajv.errorsText();
}
