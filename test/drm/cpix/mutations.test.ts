import * as fc from 'fast-check';
import { formatUuid } from '../../../src/drm/bytes';
import { type CpixChoice, chooseKeys } from '../../../src/drm/cpix/choose';
import { cpixKeyFile } from '../../../src/drm/cpix/key-file';
import { readCpix } from '../../../src/drm/cpix/read';
import { keyFileLines, renderKeyFile } from '../../../src/drm/key-file';
import { playReadyObjectOf } from '../../../src/drm/playready';
import { buildPsshBox } from '../../../src/drm/pssh';
import { WIDEVINE_SYSTEM_ID, widevinePsshDataOf } from '../../../src/drm/widevine';
import { cpixVector, documentOf } from '../../support/cpix';
import { contentKeyOf, cpixText, ivOf, key, keyIdOf, rule, system, toBase64 } from '../../support/cpix-text';

const multiDrm = [1, 2, 3]
  .map((digit) => {
    const keyId = keyIdOf(digit);
    const data = Buffer.from(widevinePsshDataOf(keyId, 'a'), 'base64');
    const pssh = `<PSSH>${toBase64(buildPsshBox(WIDEVINE_SYSTEM_ID, data))}</PSSH>`;
    const object = playReadyObjectOf(keyId, contentKeyOf(digit), 'https://pr.example/?a=1&b=2');
    const pro = toBase64(`<mspr:pro>${toBase64(object)}</mspr:pro>`);
    const protection = `<ContentProtectionData>${pro}</ContentProtectionData>`;
    return (
      system('widevine', [digit], pssh) +
      system('playready', [digit], protection) +
      system('fairplay', [digit])
    );
  })
  .join('');
const inPeriod = (id: string) => `<KeyPeriodFilter periodId="${id}"/>`;

/** Real documents, and one of everything. */
const DOCUMENTS = [
  cpixVector('EncryptedContentKeys.xml').toString('utf8'),
  cpixVector('Invalid_WrongMac.xml').toString('utf8'),
  cpixText({
    attributes: ' contentId="news" version="2.3"',
    keys: [1, 2, 3].map((digit) => key(digit, `explicitIV="${toBase64(ivOf(digit))}"`)),
    systems: multiDrm,
    periods: ['p1/1', 'p2/2'],
    rules:
      rule(1, 'SD', `${inPeriod('p1')}<VideoFilter/>`) +
      rule(2, 'HD', `${inPeriod('p2')}<VideoFilter/><LabelFilter label="main"/>`) +
      rule(3, 'AUDIO', '<AudioFilter/>'),
  }),
  cpixText({
    keys: [key(1, `explicitIV="${toBase64(ivOf(1))}" commonEncryptionScheme="cenc"`)],
    systems: multiDrm.slice(0, multiDrm.indexOf('<DRMSystem kid="2')),
  }),
];

/** Where the elements of a document begin and end. */
function elementsOf(text: string): { start: number; end: number }[] {
  const open: number[] = [];
  const found: { start: number; end: number }[] = [];
  for (const { 0: tag, index } of text.matchAll(/<[^?!][^>]*>/g)) {
    if (tag.startsWith('</')) found.push({ start: open.pop() ?? 0, end: index + tag.length });
    else if (tag.endsWith('/>')) found.push({ start: index, end: index + tag.length });
    else open.push(index);
  }
  return found;
}

type Mutation = (text: string) => string;

const position = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
const onElement = (change: (element: string) => string) =>
  position.map(
    (where): Mutation =>
      (text) => {
        const elements = elementsOf(text);
        const { start, end } = elements[Math.floor(where * elements.length)] ?? { start: 0, end: 0 };
        return text.slice(0, start) + change(text.slice(start, end)) + text.slice(end);
      },
  );

/** Changes that leave each value with its key id. */
const structural: fc.Arbitrary<Mutation> = fc.oneof(
  onElement(() => ''),
  onElement((element) => element + element),
  onElement((element) => element.repeat(60)),
  onElement((element) => `<a>${element}</a>`),
  onElement((element) => '<a>'.repeat(30) + element + '</a>'.repeat(30)),
  onElement((element) => element.replace('>', '><!-- a -->')),
  onElement((element) => element.replace(/^<(\w+)/, '<$1 xmlns="urn:other"')),
  onElement((element) => element.replace(/"[^"]*"/, '""')),
);
const destructive: fc.Arbitrary<Mutation> = fc.oneof(
  structural,
  fc
    .tuple(position, fc.constantFrom('<', '>', '&', '"', '\0', '=', 'A', 'ä', '<!DOCTYPE a>', '&#0;', ']]>'))
    .map(
      ([where, piece]): Mutation =>
        (text) => {
          const at = Math.floor(where * text.length);
          return text.slice(0, at) + piece + text.slice(at + 1);
        },
    ),
  fc.tuple(position, position).map(
    ([from, to]): Mutation =>
      (text) => {
        const [start, end] = [from, to].sort().map((where) => Math.floor(where * text.length));
        return text.slice(0, start) + text.slice(end);
      },
  ),
);

const choices = fc.record({
  keyId: fc.constantFrom(undefined, undefined, keyIdOf(1), keyIdOf(9)),
  track: fc.constantFrom(undefined, 'HD', 'main', 'VIDEO', 'AUDIO', 'toString'),
  period: fc.constantFrom(undefined, 'p1', '2', '9'),
  systems: fc.constantFrom(undefined, ['widevine'] as const, ['fairplay', 'playready'] as const),
});

/** Reads a document, chooses keys, and returns the text of the key file, which must agree with the document. */
function run(input: string | Buffer, choice: CpixChoice): string | undefined {
  const read = readCpix(input);
  if (!read.ok) {
    expect(read.problem.description.length).toBeLessThan(300);
    return undefined;
  }
  const document = read.value;
  const kids = document.keys.map(({ keyId }) => formatUuid(keyId));
  expect(new Set(kids).size).toBe(kids.length);
  for (const { keyId } of [...document.systems, ...document.rules]) expect(kids).toContain(formatUuid(keyId));
  const chosen = chooseKeys(document, choice);
  if (!chosen.ok) {
    expect(chosen.faults.length).toBeGreaterThan(0);
    for (const { code, description: sentence } of chosen.faults) {
      expect(code).toMatch(/^cpix_/);
      expect(sentence.length).toBeLessThan(4000);
    }
    return undefined;
  }
  const { cenc, fairplay } = chosen.value;
  expect(cenc ?? fairplay).toBeDefined();
  for (const one of [cenc, fairplay]) if (one) expect(kids).toContain(formatUuid(one.keyId));
  const made = cpixKeyFile(document, chosen.value, { playReadyUrl: 'https://pr.example/' });
  return made.ok ? renderKeyFile(keyFileLines(made.keyFile)) : undefined;
}

const inTurn = (changes: readonly Mutation[]) => (text: string) =>
  changes.reduce((changed, change) => change(changed), text);

it('a document, or bytes, changed anywhere is read or refused, and its keys are chosen or the choices reported', () => {
  const byte = fc.oneof(fc.integer({ min: 32, max: 126 }), fc.nat(255));
  const flips = fc.array(fc.tuple(position, byte), { minLength: 1, maxLength: 6 });
  const flipped = fc
    .tuple(fc.constantFrom<BufferEncoding>('utf8', 'utf16le'), flips)
    .map(([encoding, at]) => (text: string) => {
      const bytes = Buffer.from(text, encoding);
      for (const [where, value] of at) bytes[Math.floor(where * bytes.length)] = value;
      return bytes;
    });
  const changes = fc.oneof(fc.array(destructive, { minLength: 1, maxLength: 4 }).map(inTurn), flipped);
  const property = fc.property(fc.constantFrom(...DOCUMENTS), changes, choices, (text, change, choice) => {
    run(change(text), choice);
  });
  fc.assert(property, { numRuns: 500 });
});

it('a document whose elements are dropped, doubled, wrapped or renamed never gives a key to another key id', () => {
  const originals = new Map(
    DOCUMENTS.flatMap((text) =>
      documentOf(text).keys.flatMap(({ keyId, value }) =>
        value?.kind === 'plain' ? [[toBase64(keyId), toBase64(value.bytes)] as const] : [],
      ),
    ),
  );
  const fits = fc.constantFrom<CpixChoice>(
    { track: 'HD', period: 'p2' },
    { keyId: keyIdOf(1), period: 'p1' },
    { keyId: keyIdOf(1) },
    {},
  );
  let files = 0;
  fc.assert(
    fc.property(
      fc.constantFrom(...DOCUMENTS.slice(2)),
      fc.array(structural, { minLength: 1, maxLength: 3 }).map(inTurn),
      fits,
      (text, change, choice) => {
        const file = run(change(text), choice);
        const line = (name: string) =>
          file?.match(new RegExp(`^mpegdashstreaming-cenc-${name}: (.*)$`, 'm'))?.[1];
        const keyId = line('key-id');
        if (keyId === undefined) return;
        files += 1;
        expect(line('content-key')).toBe(originals.get(keyId));
      },
    ),
    { numRuns: 300 },
  );
  expect(files).toBeGreaterThan(10);
});
