import { check } from '../../../src/api/check';
import { type ForwardReader, outlineManifest, outlineMedia } from '../../../src/drm/check/outline';
import { packagedManifest, packagedMedia } from '../../vectors/packaged-media';
import { media } from '../../vectors/packaged-media.json';

/** Reads bytes that are there, and counts what is read. */
function readerOf(bytes: Buffer): ForwardReader & { readonly count: () => number } {
  let at = 0;
  let count = 0;
  return {
    read: async (length) => {
      const read = bytes.subarray(at, at + length);
      at += read.length;
      count += read.length;
      return read;
    },
    skip: async (length) => {
      const passed = Math.min(length, bytes.length - at);
      at += passed;
      return passed;
    },
    count: () => count,
  };
}

function box(type: string, body: Buffer, size = body.length + 8): Buffer {
  const head = Buffer.alloc(8);
  head.writeUInt32BE(size);
  head.write(type, 4, 'latin1');
  return Buffer.concat([head, body]);
}

/** Boxes around nothing: each says that it has 2 GiB. */
function endless(type: string, times: number): Buffer {
  return Buffer.concat(Array.from({ length: times }, () => box(type, Buffer.alloc(0), 2 ** 31)));
}

describe('the outline of media', () => {
  it.each(media.map(({ name }) => name))('says what the media say: %s', async (name) => {
    const bytes = packagedMedia(name);
    const outline = await outlineMedia(readerOf(bytes));
    expect(outline.isWhole).toBe(true);
    expect(check(outline.bytes)).toEqual(check(bytes));
    expect(outline.bytes.length).toBeLessThan(bytes.length);
  });

  it('says what a file with its index behind 64-bit media says, without reading these', async () => {
    const head = box('mdat', Buffer.alloc(8), 1);
    head.writeBigUInt64BE(BigInt(16 + 3_000_000), 8);
    const init = packagedMedia('cenc/v.mp4');
    const moov = init.indexOf('moov') - 4;
    const parts = [init.subarray(0, moov), head, Buffer.alloc(3_000_000), init.subarray(moov)];
    const reader = readerOf(Buffer.concat(parts));
    expect(check((await outlineMedia(reader)).bytes)).toEqual({ ...check(init), kind: 'media_file' });
    expect(reader.count()).toBeLessThan(10_000);
  });

  it('keeps what fragments say once, however many there are', async () => {
    const one = Buffer.concat([packagedMedia('rotation/v1.m4s'), box('mdat', Buffer.alloc(1000))]);
    const other = Buffer.concat([packagedMedia('rotation/v4.m4s'), box('mdat', Buffer.alloc(1000))]);
    const parts = [packagedMedia('rotation/v.mp4'), ...Array<Buffer>(500).fill(one), other];
    const outline = await outlineMedia(readerOf(Buffer.concat(parts)));
    expect(outline.isWhole).toBe(true);
    expect(outline.bytes.length).toBeLessThan(5000);
    expect(check(outline.bytes).fields.filter(({ name }) => name.startsWith('fragment['))).toHaveLength(2);
  });

  it('shows the first of very many keys, and says so', async () => {
    const fragment = packagedMedia('rotation-cbcs/a3.m4s').toString('latin1');
    const key = Buffer.from('da52ef4523098e6854777ee322681d44', 'hex').toString('latin1');
    const fragments = Array.from({ length: 30 }, (_, number) =>
      Buffer.from(fragment.replaceAll(key, String.fromCharCode(number + 1).repeat(16)), 'latin1'),
    );
    const { fields, faults } = check(Buffer.concat([packagedMedia('rotation-cbcs/a.mp4'), ...fragments]));
    expect(faults).toEqual([]);
    expect(fields.filter(({ name }) => /^fragment\[\d+\]\.key_id$/.test(name))).toHaveLength(10);
    const note = 'the first 10 are shown';
    expect(fields.at(-1)).toEqual({ name: 'fragments', value: '30 with keys of their own', note });
  });

  it.each([
    ['of sizes beyond the end', Buffer.concat([endless('moov', 50), endless('trak', 50)])],
    ['without a size', box('moov', box('trak', Buffer.alloc(100), 0), 0)],
    ['of an impossible 64-bit size', box('moov', Buffer.alloc(58, 0xff), 1)],
    ['of a size less than their header', Buffer.alloc(1000, 5)],
  ])('ends with boxes %s', async (_what, bytes) => {
    const outline = await outlineMedia(readerOf(bytes));
    expect(outline.bytes.length).toBeLessThan(1000);
    expect(outline.isWhole).toBe(true);
  });

  it('stops after so many boxes, and says so', async () => {
    const outline = await outlineMedia(readerOf(Buffer.alloc(8 * 1001, box('free', Buffer.alloc(0)))), 1000);
    expect(outline).toEqual({ bytes: Buffer.alloc(0), isWhole: false });
  });

  it('stops after so many bytes, and says so', async () => {
    const pssh = box('pssh', Buffer.alloc(60_000));
    const reader = readerOf(box('moov', Buffer.concat(Array<Buffer>(100).fill(pssh))));
    const outline = await outlineMedia(reader);
    expect(outline.isWhole).toBe(false);
    expect(outline.bytes.length).toBeLessThan(600_000);
    expect(reader.count()).toBeLessThan(700_000);
  });

  it('keeps the start of a box that is too long, by which it is known as cut', async () => {
    const { bytes } = await outlineMedia(readerOf(box('moov', box('pssh', Buffer.alloc(100_000)))));
    expect(check(bytes).faults.map(({ code }) => code)).toEqual(['malformed_box', 'not_protected']);
  });
});

describe('the outline of a manifest', () => {
  it('leaves segments out', () => {
    const segments = '<S t="0" d="25600"/>\n'.repeat(50_000);
    const long = packagedManifest('cenc/s.mpd').replace('<SegmentTimeline>', `<SegmentTimeline>${segments}`);
    const kept = outlineManifest(long);
    expect(kept.length).toBeLessThan(10_000);
    expect(check(kept)).toEqual(check(packagedManifest('cenc/s.mpd')));
  });

  it.each(['cenc/v.m3u8', 'two-keys/a.m3u8', 'clear/v.m3u8', 'clear/master.m3u8'])(
    'keeps the key lines of a playlist: %s',
    (name) => {
      const text = packagedManifest(name);
      const segmented = name.includes('master')
        ? text
        : text.replace('#EXTINF', `${'#EXTINF:2,\nv.m4s\n'.repeat(9000)}#EXTINF`);
      expect(outlineManifest(segmented).length).toBeLessThan(10_000);
      expect(check(outlineManifest(segmented))).toEqual(check(text));
    },
  );

  it('keeps the version and the variables of a playlist', () => {
    const line = (uri: string) =>
      `#EXT-X-KEY:METHOD=SAMPLE-AES,URI="${uri}",KEYFORMAT="com.apple.streamingkeydelivery"`;
    const head =
      '#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-TARGETDURATION:6\n#EXT-X-DEFINE:NAME="id",VALUE="asset1"\n';
    const text = `${head}${line('skd://{$id}')}\n#EXTINF:6,\na.ts\n`;
    expect(check(outlineManifest(text))).toEqual(check(text));
    expect(check(text).faults.map(({ code }) => code)).toEqual(['version_too_low']);
  });
});
