import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { CpixDocument } from '../../../src/drm/cpix/document';
import { openCpix } from '../../../src/drm/cpix/encryption';
import { readCpix } from '../../../src/drm/cpix/read';
import { readRecipient } from '../../../src/drm/cpix/recipient';

const vector = (name: string) => readFileSync(join(__dirname, '../../vectors/cpix', name));

function documentOf(input: Buffer | string): CpixDocument {
  const read = readCpix(input);
  if (!read.ok) throw new Error(read.fault.sentence);
  return read.value;
}

const recipientOf = (certificate: string, key: string) => {
  const read = readRecipient(certificate, key);
  if (!read.ok) throw new Error(read.fault.sentence);
  return read.value;
};

const recipient = recipientOf(vector('Cert1.pem').toString(), vector('Cert1-key.pem').toString());

it('opens a published document to the values that its readme prints', async () => {
  const document = documentOf(vector('EncryptedContentKeys.xml'));
  const values = [
    '3rWoHYasQubO6HbJGrGtLw==',
    'O5w9FdZiwmQK4uIXzAziaQ==',
    'Cwu/3hSBBRQ7SurBdZD5ow==',
    'FB6/Eck9Y9SXy6bY8UU/Mw==',
  ];
  const keys = document.keys.map((key, index) => ({
    ...key,
    value: { kind: 'plain', bytes: Buffer.from(values[index] ?? '', 'base64') },
  }));
  expect(await openCpix(document, recipient)).toEqual({ ok: true, value: { ...document, keys } });
});
