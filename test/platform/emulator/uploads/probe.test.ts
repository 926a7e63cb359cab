import { mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { probe } from '../../../../src/platform/emulator/uploads/probe';
import { processorMs } from '../../../support/processor-time';

const MEDIA = join(__dirname, '../../../vectors/media');
const folder = mkdtempSync(join(tmpdir(), 'probe-test-'));

afterAll(() => rmSync(folder, { recursive: true }));

/** Probes a file of these bytes. */
function probeBytes(bytes: Buffer | string) {
  const path = join(folder, 'file');
  writeFileSync(path, bytes);
  return probe({ path });
}

const FILM = { mediaType: 'video', mimeType: 'video/mp4', duration: 2, width: 64, height: 36 };
const WITHOUT_DURATION = { ...FILM, duration: undefined };

const media = (name: string) => readFileSync(join(MEDIA, name));

test.each([
  ['film.mp4', FILM],
  ['turned.mov', { mediaType: 'video', mimeType: 'video/quicktime', duration: 2, width: 36, height: 64 }],
  ['fragmented.mp4', WITHOUT_DURATION],
  ['sound.m4a', { mediaType: 'audio', mimeType: 'audio/mp4', duration: 2 }],
  ['picture.jpg', { mimeType: 'image/jpeg' }],
  ['picture.png', { mimeType: 'image/png' }],
  ['picture.gif', { mimeType: 'image/gif' }],
  ['picture.webp', { mimeType: 'image/webp' }],
  ['lossless.webp', { mimeType: 'image/webp' }],
])('recognizes %s', async (name, facts) => {
  expect(await probe({ path: join(MEDIA, name) })).toEqual(facts);
});

const vtt = { mimeType: 'text/vtt' };
const srt = { mimeType: 'application/x-subrip' };
const svg = { mimeType: 'image/svg+xml' };

test.each([
  ['WEBVTT', vtt],
  ['\ufeffWEBVTT - a title\r\n\r\n00:01.000 --> 00:02.000\r\nHello', vtt],
  ['WEBVTTX\n', undefined],
  ['1\n00:00:01,000 --> 00:00:02,000\nHello\n', srt],
  ['\ufeff\r\n\r\n7\r\n00:00:01.5 --> 00:00:02.000 X1:0\r\nHello', srt],
  ['1\nHello\n', undefined],
  ['<svg width="640" height="360px"/>', svg],
  ['<?xml version="1.0"?>\n<!-- > -->\n<!DOCTYPE svg>\n<svg\n viewBox="0 0 16.4 9">', svg],
  ['<html><svg width="1" height="1"></html>', undefined],
  ['<!-- never ends <svg>', undefined],
  ['plain text', undefined],
  ['', undefined],
])('recognizes text by its start: %j', async (text, facts) => {
  expect(await probeBytes(text)).toEqual(facts);
});

/** A box with this content. */
function box(type: string, content: Buffer | string = '', size = 8 + content.length): Buffer {
  const head = Buffer.alloc(8);
  head.writeUInt32BE(size);
  head.write(type, 4, 'latin1');
  return Buffer.concat([head, typeof content === 'string' ? Buffer.from(content, 'latin1') : content]);
}

/** The same with a length of 64 bits. */
function longBox(type: string, content: Buffer, size = BigInt(16 + content.length)): Buffer {
  const length = Buffer.alloc(8);
  length.writeBigUInt64BE(size);
  return Buffer.concat([box(type, '', 1), length, content]);
}

const FTYP = box('ftyp', 'isom\0\0\0\0');
const film = media('film.mp4');
const MOOV = film.subarray(film.indexOf('moov') - 4);

test('finds the description behind 6 GB of film, and reads a few bytes only', async () => {
  const path = join(folder, 'large');
  const hole = 6 * 2 ** 30;
  writeFileSync(path, FTYP);
  truncateSync(path, FTYP.length + hole + MOOV.length);
  const file = await open(path, 'r+');
  await file.write(longBox('mdat', Buffer.alloc(0), BigInt(hole)), 0, 16, FTYP.length);
  await file.write(MOOV, 0, MOOV.length, FTYP.length + hole);
  await file.close();
  const took = await processorMs(async () => {
    expect(await probe({ path })).toMatchObject({ mediaType: 'video', duration: 2 });
  });
  expect(took).toBeLessThan(3000);
});

test.each([
  ['boxes of no length', Buffer.concat([FTYP, box('moov', box('trak', '', 0))])],
  ['a box shorter than its head', Buffer.concat([FTYP, box('moov', '', 7), MOOV])],
  ['a long box shorter than its head', Buffer.concat([FTYP, longBox('moov', MOOV, 15n)])],
  ['a box of 2^63 bytes', Buffer.concat([FTYP, longBox('mdat', MOOV, 2n ** 63n)])],
  ['a box of 2^64 - 1 bytes', Buffer.concat([FTYP, longBox('mdat', MOOV, 2n ** 64n - 1n)])],
  ['a box that goes on behind the end', Buffer.concat([FTYP, box('moov', MOOV, 2 ** 31)])],
  ['a hundred thousand empty boxes', Buffer.concat([FTYP, ...Array(100_000).fill(box('free'))])],
  ['as many tracks', Buffer.concat([FTYP, box('moov', Buffer.concat(Array(100_000).fill(box('trak'))))])],
  ['a film without a track', Buffer.concat([FTYP, box('moov', box('mvhd', Buffer.alloc(100)))])],
  ['its first box alone', FTYP],
])('of a movie with %s it says nothing, soon', async (_what, bytes) => {
  const took = await processorMs(async () => expect(await probeBytes(bytes)).toBeUndefined());
  expect(took).toBeLessThan(3000);
});

/** The film with these bytes of its `mvhd` in place of its own, from the place on. */
function withTimes(at: number, ...bytes: number[]): Buffer {
  const changed = Buffer.from(film);
  changed.set(bytes, changed.indexOf('mvhd') + 4 + at);
  return changed;
}

test.each([
  ['no units in a second', withTimes(12, 0, 0, 0, 0)],
  ['an unknown length', withTimes(16, 255, 255, 255, 255)],
  ['a length of years', withTimes(12, 0, 0, 0, 1, 127, 255, 255, 255)],
  ['no length', withTimes(16, 0, 0, 0, 0)],
])('a movie with %s has no duration', async (_what, bytes) => {
  expect(await probeBytes(bytes)).toEqual(WITHOUT_DURATION);
});

/** Zeros with these numbers at their places; a bigint takes 8 bytes, a number 4. */
function fields(length: number, numbers: Readonly<Record<number, number | bigint>>): Buffer {
  const content = Buffer.alloc(length);
  for (const [at, value] of Object.entries(numbers)) {
    if (typeof value === 'bigint') content.writeBigUInt64BE(value, Number(at));
    else content.writeUInt32BE(value, Number(at));
  }
  return content;
}

const VERSION_1 = 0x0100_0000;
const SOUND = box('trak', box('mdia', box('hdlr', '\0\0\0\0\0\0\0\0soun')));
const movie = (...boxes: Buffer[]) => Buffer.concat([FTYP, box('moov', Buffer.concat([...boxes, SOUND]))]);
const UNKNOWN_LENGTH = box('mvhd', fields(100, { 12: 1000 }));

test.each([
  ['in 64 bits', movie(box('mvhd', fields(112, { 0: VERSION_1, 20: 1000, 24: 90_000_500n }))), 90_000.5],
  ['in its fragments', movie(UNKNOWN_LENGTH, box('mvex', box('mehd', fields(8, { 4: 2500 })))), 2.5],
  ['in both', movie(UNKNOWN_LENGTH, box('mvex', box('mehd', fields(12, { 0: VERSION_1, 4: 1500n })))), 1.5],
])('a movie may have its length %s', async (_where, bytes, duration) => {
  expect(await probeBytes(bytes)).toEqual({ mediaType: 'audio', mimeType: 'audio/mp4', duration });
});

test('says nothing of a file that is not there, or is none', async () => {
  expect(await probe({ path: join(folder, 'missing') })).toBeUndefined();
  expect(await probe({ path: folder })).toBeUndefined();
});

const FILES = ['film.mp4', 'turned.mov', 'picture.jpg', 'picture.png', 'picture.gif', 'picture.webp'].map(
  media,
);

test('there is an answer for a file with any bytes changed, or cut anywhere', async () => {
  const change = fc.tuple(fc.nat(5000), fc.uint8Array({ minLength: 1, maxLength: 16 }));
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...FILES),
      fc.array(change, { maxLength: 5 }),
      fc.nat(5000),
      async (file, changes, cut) => {
        const bytes = Buffer.from(file);
        for (const [at, changed] of changes)
          bytes.set(changed.slice(0, bytes.length - (at % bytes.length)), at % bytes.length);
        const facts = await probeBytes(bytes.subarray(0, cut));
        const numbers = [facts?.duration, facts?.width, facts?.height].filter((each) => each !== undefined);
        expect(numbers.every((each) => Number.isFinite(each) && each > 0)).toBe(true);
      },
    ),
    { numRuns: 150 },
  );
});
