import fc from 'fast-check';
import { parseXml } from '../../../../src/drm/xml';
import { FORMATS } from '../../../../src/platform/emulator/v1/serialize';
import type { JsonObject } from '../../../../src/platform/migration/mapping/values';
import { anyCharacter } from '../../../support/any-character';

const VIDEO = {
  key: 'yYul4DRz',
  author: 'J & W',
  custom: { key: 'k', 'my param': '<v>' },
  date: 1225962900,
  duration: '12.0',
  expires_date: null,
  required: true,
  link: { protocol: 'http', query: { key: 'q', token: 't' } },
};

test('XML has keys and totals as attributes, and an element of its singular for what a list has', async () => {
  const answer = { status: 'ok', total: 22, videos: [VIDEO] };
  expect(await FORMATS.xml(answer)).toEqual({
    type: 'application/xml; charset=utf-8',
    body: `<?xml version="1.0" encoding="UTF-8"?>
<response><status>ok</status><total>22</total><videos total="22"><video key="yYul4DRz"><author>J &amp; W</author><custom><key>k</key><param name="my param">&lt;v&gt;</param></custom><date>1225962900</date><duration>12.0</duration><expires_date/><required>True</required><link><protocol>http</protocol><query><key>q</key><token>t</token></query></link></video></videos></response>`,
  });
  expect((await FORMATS.xml({ status: 'ok', tracks: [], rates: [0.5, 2] })).body).toBe(
    '<?xml version="1.0" encoding="UTF-8"?>\n<response><status>ok</status><tracks total="0"/><rates total="2"><rate>0.5</rate><rate>2</rate></rates></response>',
  );
});

test('XML is well-formed whatever names and values there are', async () => {
  const text = fc.string({ unit: anyCharacter });
  const values = fc.dictionary(text, fc.oneof(text, fc.double(), fc.boolean(), fc.constant(null)));
  await fc.assert(
    fc.asyncProperty(values, text, async (custom, title) => {
      const { body } = await FORMATS.xml({ videos: [{ key: title, title, custom }] });
      const parsed = parseXml(body);
      expect(parsed).toMatchObject({ ok: true });
    }),
  );
});

// Read by `unserialize` of PHP.
test('PHP is serialized with lengths in bytes', () => {
  const answer = { status: 'ok', a: [1, -2, 0.5], b: { é: '€"' }, c: null, d: [true, false], e: [] };
  expect(FORMATS.php(answer)).toEqual({
    type: 'text/plain; charset=utf-8',
    body: 'a:6:{s:6:"status";s:2:"ok";s:1:"a";a:3:{i:0;i:1;i:1;i:-2;i:2;d:0.5;}s:1:"b";a:1:{s:2:"é";s:4:"€"";}s:1:"c";N;s:1:"d";a:2:{i:0;b:1;i:1;b:0;}s:1:"e";a:0:{}}',
  });
});

// Read by `pickle.loads` of Python 3.11.
test('Python is pickled in protocol 2', () => {
  const { type, body } = FORMATS.py({ a: 'é', b: [1, -2, 2 ** 40, 0.5], c: null, d: [true, false] });
  expect([type, body.toString('hex')]).toEqual([
    'application/octet-stream',
    [
      '80027d28',
      '580100000061',
      '5802000000c3a9',
      '580100000062',
      '5d284a010000004afeffffff8a080000000000010000473fe000000000000065',
      '5801000000634e',
      '5801000000645d28888965',
      '752e',
    ].join(''),
  ]);
});

test('JSON is as it is', () => {
  const answer: JsonObject = { status: 'ok', videos: [VIDEO] };
  const { type, body } = FORMATS.json(answer);
  expect([type, JSON.parse(body.toString())]).toEqual(['application/json; charset=utf-8', answer]);
});
