// Does a command's JSON fit the schemas in the package? The envelope is checked, and `data` by its kind (null is enough
// on failure).
import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { Ajv, type ValidateFunction } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';

const folder = resolve(import.meta.dirname, '../../schemas');
const newest = new Ajv2020({ allErrors: true, strict: false });
const draft7 = new Ajv({ allErrors: true, strict: false });
for (const ajv of [newest, draft7]) (addFormats as unknown as (instance: Ajv) => void)(ajv);
const compiled = new Map<string, ValidateFunction>();

function validator(name: string): ValidateFunction {
  let found = compiled.get(name);
  if (!found) {
    const path = join(folder, `${name}.json`);
    if (!existsSync(path)) throw new Error(`there is no schema for kind ${name}: schemas/${name}.json`);
    const schema = JSON.parse(readFileSync(path, 'utf8')) as { $schema?: string };
    found = (schema.$schema?.includes('draft-07') ? draft7 : newest).compile(schema);
    compiled.set(name, found);
  }
  return found;
}

/** One line for each violation. Empty if there is none. */
export function schemaProblems(document: unknown): string[] {
  const problems = (name: string, value: unknown): string[] => {
    const validate = validator(name);
    return validate(value)
      ? []
      : (validate.errors ?? []).map(
          (error) => `${name}${error.instancePath}: ${error.message ?? ''} ${JSON.stringify(error.params)}`,
        );
  };
  const own = problems('envelope', document);
  if (own.length > 0) return own;
  const { kind, data, ok } = document as { kind: string; data: unknown; ok: boolean };
  return !ok && data === null ? [] : problems(kind, data);
}
