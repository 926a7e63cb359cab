import * as fc from 'fast-check';
import { Lines } from '../../../../src/sidecar/fleet/engine/etcd-lines';

test('lines are the same however their bytes are cut into parts', () => {
  const line = fc
    .uint8Array({ maxLength: 20 })
    .map((bytes) => Buffer.from(bytes.map((byte) => (byte === 10 ? 11 : byte))));
  fc.assert(
    fc.property(fc.array(line, { maxLength: 8 }), fc.array(fc.nat(30), { maxLength: 20 }), (lines, sizes) => {
      const bytes = Buffer.concat(lines.flatMap((each) => [each, Buffer.from('\n')]));
      const cutter = new Lines();
      const found: Buffer[] = [];
      let from = 0;
      for (const size of [...sizes, bytes.length]) {
        found.push(...cutter.add(bytes.subarray(from, from + size)));
        from += size;
      }
      expect(found).toEqual(lines.filter(({ length }) => length > 0));
    }),
    { numRuns: 200 },
  );
});

test('a line without its end is not answered before that comes', () => {
  const cutter = new Lines();
  expect(cutter.add(Buffer.from('one\ntw'))).toEqual([Buffer.from('one')]);
  expect(cutter.add(Buffer.from('o'))).toEqual([]);
  expect(cutter.add(Buffer.from('\n'))).toEqual([Buffer.from('two')]);
});
