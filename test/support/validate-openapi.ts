import { execFileSync } from 'node:child_process';
import { resolve } from 'node:path';

/** A program, since the validator is an ES module. It says what is wrong with the OpenAPI document on its input. */
const VALIDATE = `
import { Validator } from '@seriousme/openapi-schema-validator';
let text = '';
for await (const chunk of process.stdin) text += chunk;
const validator = new Validator();
const { valid, errors = [] } = await validator.validate(JSON.parse(text));
process.stdout.write(JSON.stringify({ valid, version: validator.version, errors }));
`;

/** What an independent validator says of an OpenAPI document. */
export function validateOpenApi(document: unknown): unknown {
  const answer = execFileSync(process.execPath, ['--input-type=module', '--eval', VALIDATE], {
    cwd: resolve(__dirname, '../..'),
    input: JSON.stringify(document),
  });
  return JSON.parse(String(answer));
}
