import { chmodSync, copyFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ConfigError } from '../../src/http/config';
import { openCpixRecipient } from '../../src/provider/cpix-recipient';
import { afterTest, folderOfEachTest } from '../support/after-test';
import { cpixVector, cpixVectorPath, recipientNamed } from '../support/cpix';
import { type LogLine, recordedLog } from '../support/recorded-log';
import { until } from '../support/until';

const folder = folderOfEachTest();
const certificate = join(folder, 'cpix.crt');
const key = join(folder, 'cpix.key');
let lines: LogLine[];

function place(name: string, path: string): void {
  copyFileSync(cpixVectorPath(`${name}.pem`), path);
  chmodSync(path, 0o600);
}

beforeEach(() => {
  place('next', certificate);
  place('next-key', key);
});

function open(time = Date.UTC(2100, 0)) {
  const recorded = recordedLog();
  lines = recorded.lines;
  const opened = openCpixRecipient(
    { certificate, key },
    { log: recorded.log, clock: () => new Date(time), intervalMs: 10 },
  );
  afterTest(opened.close);
  return opened.current;
}

const certificateRead = (subject: string, validUntil: string): LogLine => [
  'info',
  'CPIX certificate read',
  {
    certificate,
    subject,
    fingerprint256: expect.stringMatching(/^(?:[0-9A-F]{2}:){31}[0-9A-F]{2}$/),
    validUntil,
  },
];
const next = () => certificateRead('CN=next of the tests', '2126-01-01T00:00:00.000Z');
const cert1 = () => certificateRead('CN=CPIX Example Entity 1', '2039-12-31T23:59:59.000Z');
const KEPT = 'the CPIX certificate and key cannot be used; the previous ones stay in use';

test('is another recipient when both files were replaced, without a word of the moment in between', async () => {
  const recipient = open();
  expect(recipient()).toEqual(recipientNamed('next'));
  place('Cert1', certificate);
  place('Cert1-key', key);
  await until(() => recipient().certificate.equals(recipientNamed('Cert1').certificate));
  expect(recipient()).toEqual(recipientNamed('Cert1'));
  expect(lines.filter(([level]) => level === 'info')).toEqual([next(), cert1()]);
});

test.each<[variables: string, fault: string, spoil: () => void]>([
  [
    'CPIXCERT',
    'CERTIFICATE holds no certificate in PEM form (-----BEGIN CERTIFICATE-----).',
    () => truncateSync(certificate, 300),
  ],
  ['CPIXKEY', 'KEY: there is no such file', () => rmSync(key)],
])('stays who it is when %s: %s, says why once, and refuses to start with it', async (variables, ...row) => {
  const [said, spoil] = row;
  const fault = `PACKAGERDRMAPI_${variables}: ${said.replace(/^KEY/, key).replace(/^CERTIFICATE/, certificate)}`;
  const recipient = open();
  spoil();
  await until(() => lines.length > 1);
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(recipient()).toEqual(recipientNamed('next'));
  expect(lines).toEqual([next(), ['error', KEPT, { faults: [fault] }]]);
  expect(() => open()).toThrow(new ConfigError([fault]));
});

test('says nothing of the key itself', () => {
  open();
  writeFileSync(key, cpixVector('weak-key.pem'));
  expect(() => open()).toThrow(/1024 bits/);
  expect(JSON.stringify(lines)).not.toMatch(/PRIVATE|BEGIN/);
});

test('warns of a key that every user can read, and of a certificate that has ended, and takes them: documents are still encrypted for it', () => {
  for (const file of [certificate, key]) chmodSync(file, 0o644);
  expect(open(Date.UTC(2126, 0, 1))()).toEqual(recipientNamed('next'));
  expect(lines).toEqual([
    next(),
    ['warn', 'the CPIX certificate has expired; key providers may refuse to encrypt for it', { certificate }],
    [
      'warn',
      'every user of this machine can read this secret',
      { variable: 'PACKAGERDRMAPI_CPIXKEY', file: key },
    ],
  ]);
});
