import { check, checkInput } from '../../../src/api/check';
import { formatUuid, swapKeyIdOrder } from '../../../src/drm/bytes';
import { compareInputs, withoutAnswered } from '../../../src/drm/check/compare';
import type { Finding } from '../../../src/drm/finding';
import { POST_MANUAL } from '../../support/post-manual';

/** The key id of the packaged media, and of the published key file. */
export const KEY_ID = Buffer.from(POST_MANUAL.cenc.keyid, 'base64');
export const UUID = formatUuid(KEY_ID);

/** Inputs by their names. */
export type Inputs = Readonly<Record<string, string | Buffer>>;

export function checkAll(inputs: Inputs, reveal = false) {
  return Object.entries(inputs).map(([name, value]) => checkInput(value, { name, reveal }));
}

export function compare(inputs: Inputs, reveal = false) {
  return compareInputs(checkAll(inputs, reveal), { reveal });
}

/** The sentences, with how bad each is. */
export function said(inputs: Inputs): string[] {
  return compare(inputs).faults.map((fault) => `${brief([fault])}: ${fault.description}`);
}

export function codes(inputs: Inputs): string[] {
  return brief(compare(inputs).faults);
}

/** Of each input the codes of the faults that another one doesn't answer. */
export function left(inputs: Inputs): string[][] {
  return withoutAnswered(checkAll(inputs)).map(({ result }) => result.faults.map(({ code }) => code));
}

/** Packaged media with another key id in every place of its own. */
export function withKeyId(media: Buffer, keyId: Buffer): Buffer {
  return Buffer.from(
    media.toString('latin1').replaceAll(KEY_ID.toString('latin1'), keyId.toString('latin1')),
    'latin1',
  );
}

/** Findings in short: `E` for an error or `W` for a warning, its code and, where it has one, its field. */
export function brief(faults: readonly Finding[]): string[] {
  return faults.map(({ severity, code, field = '' }) =>
    `${severity === 'error' ? 'E' : 'W'} ${code} ${field}`.trimEnd(),
  );
}

/** The kind of an input, and its findings in short. */
export function summary(input: unknown): [kind: string, ...faults: string[]] {
  const { kind, faults } = check(input);
  return [kind, ...brief(faults)];
}

/** The values of an input's fields, by their names. */
export function valuesOf(input: unknown): Record<string, string> {
  return Object.fromEntries(check(input).fields.map(({ name, value }) => [name, value]));
}

/** Bytes with another text or key id at the first place behind `after`. */
export function changed(bytes: Buffer, from: Buffer | string, to: Buffer | string, after = ''): Buffer {
  const copy = Buffer.from(bytes);
  const at = copy.indexOf(from, copy.indexOf(after));
  expect(at).toBeGreaterThan(0);
  Buffer.from(to).copy(copy, at);
  return copy;
}

/** Throws when a text contains a key: any run of it in base64 or hex, in either byte order. */
export function expectHidden(key: Buffer, text: string): void {
  const said = text.toLowerCase();
  const forms = [key, swapKeyIdOrder(key)].flatMap((order) => {
    const base64 = order.toString('base64');
    const texts = [base64, order.toString('base64url'), order.toString('hex'), encodeURIComponent(base64)];
    return [...texts.map((whole) => whole.slice(0, 20)), formatUuid(order)];
  });
  const reported = forms.filter((form) => said.includes(form.toLowerCase()));
  if (reported.length > 0) throw new Error(`${reported.join(', ')} is shown: ${text}`);
}
