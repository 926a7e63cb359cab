import * as fc from 'fast-check';
import { CPIX_DOCUMENT, CPIX_OF_TRACKS } from '../../src/sidecar/openapi/cpix-body';
import { cpixVector, recipientNamed } from '../support/cpix';
import { sampleText } from '../support/cpix-sample';
import { POST_MANUAL, POST_MANUAL_FILE } from '../support/post-manual';
import { startSidecar } from '../support/start-sidecar';

const ENCRYPTED = cpixVector('EncryptedContentKeys.xml').toString('utf8');

/** What its values are, as its readme prints them. */
const OPENED = [
  '3rWoHYasQubO6HbJGrGtLw==',
  'O5w9FdZiwmQK4uIXzAziaQ==',
  'Cwu/3hSBBRQ7SurBdZD5ow==',
  'FB6/Eck9Y9SXy6bY8UU/Mw==',
];

const DOCUMENTS = [
  CPIX_DOCUMENT,
  CPIX_OF_TRACKS,
  ENCRYPTED,
  sampleText([
    { number: 1, track: 'SD', systems: ['widevine', 'fairplay'] },
    { number: 2, track: 'HD', systems: ['widevine', 'playready', 'fairplay'], scheme: 'cenc' },
    { number: 3, track: 'AUDIO' },
  ]),
];

/** Pieces that mean something somewhere. */
const PIECES = [
  ...['<', '>', '/>', '&', '&amp;', '&lt;', '"', "'", '=', ']]>', '<![CDATA[', '<!--', '-->', '\0', '\ufeff'],
  ...[
    '<!DOCTYPE a>',
    '<?xml version="1.0"?>',
    'xmlns=""',
    'xmlns="urn:dashif:org:cpix"',
    'xml:id="__proto__"',
  ],
  ...['dependsOnKey="44da52ef-4523-098e-6854-777ee322681d"', ' commonEncryptionScheme="cbcs"', 'AAAA', '=='],
  ...[
    '44da52ef-4523-098e-6854-777ee322681d',
    '<PSSH/>',
    '<KeyPeriodFilter periodId="a"/>',
    '\u2028',
    '😀',
    '\ud800',
  ],
  ...['94ce86fb-07ff-4f43-adb8-93d2fa968ca2', 'c2tkOi8vYQpi', 'AAAAAAAAAAAAAAAAAAAAAA=='],
];

const spot = fc.double({ min: 0, max: 1, noNaN: true });
const mutation = fc.oneof(
  fc.record({
    kind: fc.constant('replace' as const),
    spot,
    length: fc.nat(3),
    by: fc.string({ maxLength: 3 }),
  }),
  fc.record({
    kind: fc.constant('replace' as const),
    spot,
    length: fc.nat(40),
    by: fc.constantFrom('', ...PIECES),
  }),
  fc.record({ kind: fc.constant('repeat' as const), spot, length: fc.nat(400), to: spot }),
  fc.record({ kind: fc.constant('element' as const), spot, isRepeated: fc.boolean() }),
);
type Mutation = typeof mutation extends fc.Arbitrary<infer Value> ? Value : never;

function mutated(text: string, one: Mutation): string {
  const at = Math.floor(one.spot * text.length);
  if (one.kind === 'replace') return text.slice(0, at) + one.by + text.slice(at + one.length);
  if (one.kind === 'repeat') {
    const to = Math.floor(one.to * text.length);
    return text.slice(0, to) + text.slice(at, at + one.length) + text.slice(to);
  }
  // A whole element that has no element of its own name in it.
  const found = /<([\w:]+)(?:\s[^>]*)?(?:\/>|>(?:(?!<\1)[\s\S])*?<\/\1>)/.exec(text.slice(at));
  if (!found) return text;
  const start = at + found.index;
  const [element] = found;
  return (
    text.slice(0, start) + (one.isRepeated ? element + element : '') + text.slice(start + element.length)
  );
}

/** The values that a document has in plain text, whatever white space and CDATA they hold. */
function valuesIn(text: string): string[] {
  return [...text.matchAll(/<(?:\w+:)?PlainValue[^>]*>([\s\S]*?)<\//g)].map(([, value = '']) =>
    value.replaceAll(/<!\[CDATA\[|\]\]>|<!--[\s\S]*?-->|\s/g, ''),
  );
}

const choice = fc.constantFrom(
  '',
  'track=SD',
  'track=HD',
  'track=AUDIO',
  'kid=44da52ef-4523-098e-6854-777ee322681d',
  'kid=bd5adf51-cf04-410f-aac3-ec63a69e929e&systems=widevine',
  'systems=widevine',
  'systems=fairplay',
  'systems=widevine,playready&laurl=https%3A%2F%2Fa.example%2F',
);

it('never fails, and writes no key that is not the one in the document', async () => {
  const sidecar = await startSidecar({}, undefined, { cpixRecipient: () => recipientNamed('Cert1') });
  await sidecar.api.post('/api/keyfile/demo').send(POST_MANUAL).expect(200);
  let written = 0;
  let file = POST_MANUAL_FILE;
  const cases = fc.tuple(
    fc.constantFrom(...DOCUMENTS),
    fc.array(mutation, { maxLength: 3 }),
    choice,
    fc.boolean(),
  );
  await fc.assert(
    fc.asyncProperty(cases, async ([document, mutations, query, isJson]) => {
      const text = mutations.reduce(mutated, document);
      const fields = Object.fromEntries(new URLSearchParams(query));
      const { systems, laurl, ...rest } = fields;
      const json = {
        cpix: text,
        ...rest,
        ...(systems !== undefined && { systems: systems.split(',') }),
        ...(laurl !== undefined && { playready: { laurl } }),
      };
      const answer = isJson
        ? await sidecar.api.post('/api/keyfile/demo').send(json)
        : await sidecar.api
            .post(`/api/keyfile/demo?${query}`)
            .set('content-type', 'application/cpix+xml')
            .send(Buffer.from(text, 'utf8'));
      expect([200, 400]).toContain(answer.status);
      if (answer.status === 200) {
        written += 1;
        file = answer.text;
        const values = [...valuesIn(text), ...(text.includes('EncryptedValue') ? OPENED : [])];
        const dash = /^mpegdashstreaming-cenc-content-key: (.*)$/m.exec(file)?.[1];
        const hls = /^cupertinostreaming-aes128-key: (.*)$/m.exec(file)?.[1];
        if (dash !== undefined) expect(values).toContain(dash);
        if (hls !== undefined) expect(values).toContain(Buffer.from(hls, 'hex').toString('base64'));
      } else {
        const [{ code, description }] = answer.body.errors;
        expect(code).toMatch(/^[a-z_]+$/);
        expect(description).toMatch(/^\S.*[.?]$/s);
        for (const value of valuesIn(document)) expect(description).not.toContain(value);
      }
      expect(await sidecar.files()).toEqual({ 'demo.key': file });
    }),
    { numRuns: 250 },
  );
  // What is changed where nothing reads it is no matter.
  expect(written).toBeGreaterThan(10);
}, 60_000);
