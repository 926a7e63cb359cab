import fc from 'fast-check';
import { parseXml, type XmlElement } from '../../../../src/drm/xml';
import { joinManifests, secondsOfManifest } from '../../../../src/platform/packager/playlists/dash-manifest';
import type { PlaylistPart } from '../../../../src/platform/packager/playlists/hls-playlists';
import { right } from '../../../support/right';

const NOW = new Date('2026-11-22T16:05:00.000Z');
const live = (windowSeconds?: number) => ({ ended: false, windowSeconds, now: NOW });
const ENDED = { ended: true, windowSeconds: undefined, now: NOW };

/** As shaka-packager 3.4.2 writes it for a live input; `S` as [t, d, r] at 90 kHz. */
function written(video: readonly number[][], audio: readonly number[][], began = '16:00:00'): string {
  const track = (kind: string, id: number, s: readonly number[][]) => `
    <AdaptationSet id="${id}" contentType="${kind}" segmentAlignment="true">
      <ContentProtection value="cenc" schemeIdUri="urn:mpeg:dash:mp4protection:2011" cenc:default_KID="11111111-2222-3333-4444-555566667777"/>
      <ContentProtection schemeIdUri="urn:uuid:1077efec-c0b2-4d02-ace3-3c1e52e2fb4b">
        <cenc:pssh>AAAA&amp;</cenc:pssh>
      </ContentProtection>
      <Representation id="${id}" bandwidth="1000" mimeType="${kind}/mp4">
        <SegmentTemplate timescale="90000" initialization="${kind}_init.mp4" media="${kind}_$Number$.m4s" startNumber="1">
          ${s.length > 0 ? `<SegmentTimeline>${s.map(([t, d, r]) => `<S t="${t}" d="${d}"${r ? ` r="${r}"` : ''}/>`).join('')}</SegmentTimeline>` : ''}
        </SegmentTemplate>
      </Representation>
    </AdaptationSet>`;
  return `<?xml version="1.0" encoding="UTF-8"?>
<!--Generated with https://github.com/shaka-project/shaka-packager version v3.4.2-c819dea-release-->
<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" xmlns:cenc="urn:mpeg:cenc:2013" profiles="urn:mpeg:dash:profile:isoff-live:2011" minBufferTime="PT2S" type="dynamic" publishTime="2026-11-22T16:04:00Z" availabilityStartTime="2026-11-22T${began}Z" minimumUpdatePeriod="PT5S" timeShiftBufferDepth="PT100000000S">
  <Period id="0" start="PT0S">${track('video', 0, video)}${track('audio', 1, audio)}
  </Period>
</MPD>
`;
}

const part = (folder: string, text: string): PlaylistPart => ({ folder, text });
/** Four segments of 2 s from 1 s on; the sound begins 0.1 s later and ends with the picture. */
const FOUR = (began?: string) =>
  written(
    [[90_000, 180_000, 3]],
    [
      [99_000, 171_000],
      [270_000, 180_000, 2],
    ],
    began,
  );

const parsed = (text: string): XmlElement => right(parseXml(text)).value;

const periodsOf = (text: string) =>
  parsed(text)
    .children.filter(({ name }) => name === 'Period')
    .map(({ attributes }) => ({ ...attributes }));

function templatesOf(element: XmlElement): XmlElement[] {
  return element.children.flatMap((child) =>
    child.name === 'SegmentTemplate' ? [child] : templatesOf(child),
  );
}

/** The segments that a player finds: file, start in the presentation and length, in units of 1/90000 s. */
function segmentsOf(text: string) {
  let end = 0;
  return parsed(text)
    .children.filter(({ name }) => name === 'Period')
    .flatMap((period) => {
      const stated = /^PT([\d.]+)S$/.exec(period.attributes.start ?? '')?.[1];
      const start = stated === undefined ? end : Math.round(Number(stated) * 90_000);
      end =
        start + Math.round(Number(/^PT([\d.]+)S$/.exec(period.attributes.duration ?? '')?.[1] ?? 0) * 90_000);
      return templatesOf(period).flatMap(({ attributes, children }) => {
        let number = Number(attributes.startNumber);
        return (children[0]?.children ?? []).flatMap(({ attributes: s }) =>
          Array.from({ length: Number(s.r ?? 0) + 1 }, (_, index) => ({
            file: (attributes.media ?? '').replace('$Number$', String(number++)),
            start: start + Number(s.t) + index * Number(s.d) - Number(attributes.presentationTimeOffset),
            length: Number(s.d),
          })),
        );
      });
    });
}

test('a part with other keys begins where its times say, not at the clock, and one behind an empty part at the clock', () => {
  // The sound of the first part ends 0.05 s behind the cut at 9 s.
  const before = written([[90_000, 180_000, 3]], [[90_000, 724_500]]);
  const after = written([[810_000, 180_000, 1]], [[814_000, 356_000]], '16:00:30');
  const joined = (ended: boolean, first = before) =>
    periodsOf(
      joinManifests([part('1', first), { ...part('2', after), continues: true }], {
        ...live(),
        ended,
      }),
    );
  expect(joined(false)).toEqual([
    { id: '1', start: 'PT0S' },
    { id: '2', start: 'PT8S' },
  ]);
  expect(joined(true)).toEqual([
    { id: '1', duration: 'PT8S' },
    { id: '2', duration: 'PT4S' },
  ]);
  expect(joined(false, '')).toEqual([{ id: '2', start: 'PT0S' }]);
});

test('a live part is listed with its time from zero, its files below its folder, and the live attributes', () => {
  const text = joinManifests([part('1-dash', FOUR())], live());
  expect(text).toBe(`<?xml version="1.0" encoding="UTF-8"?>
<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" xmlns:cenc="urn:mpeg:cenc:2013" profiles="urn:mpeg:dash:profile:isoff-live:2011" minBufferTime="PT2S" type="dynamic" availabilityStartTime="2026-11-22T16:00:01.000Z" publishTime="2026-11-22T16:05:00.000Z" minimumUpdatePeriod="PT2S" suggestedPresentationDelay="PT6S" maxSegmentDuration="PT2S">
  <Period id="1-dash" start="PT0S">
${['video', 'audio']
  .map(
    (kind, id) => `    <AdaptationSet id="${id}" contentType="${kind}" segmentAlignment="true">
      <ContentProtection value="cenc" schemeIdUri="urn:mpeg:dash:mp4protection:2011" cenc:default_KID="11111111-2222-3333-4444-555566667777"/>
      <ContentProtection schemeIdUri="urn:uuid:1077efec-c0b2-4d02-ace3-3c1e52e2fb4b">
        <cenc:pssh>AAAA&amp;</cenc:pssh>
      </ContentProtection>
      <Representation id="${id}" bandwidth="1000" mimeType="${kind}/mp4">
        <SegmentTemplate timescale="90000" initialization="1-dash/${kind}_init.mp4" media="1-dash/${kind}_$Number$.m4s" startNumber="1" presentationTimeOffset="90000">
          <SegmentTimeline>
${kind === 'video' ? '            <S t="90000" d="180000" r="3"/>' : '            <S t="99000" d="171000"/>\n            <S t="270000" d="180000" r="2"/>'}
          </SegmentTimeline>
        </SegmentTemplate>
      </Representation>
    </AdaptationSet>
`,
  )
  .join('')}  </Period>
  <UTCTiming schemeIdUri="urn:mpeg:dash:utc:direct:2014" value="2026-11-22T16:05:00.000Z"/>
</MPD>
`);
});

test('players of low latency start three of its segments behind, although there is less sound than picture yet', () => {
  const text = written([[90_000, 90_000, 4]], [[90_000, 90_000, 2]]);
  const { suggestedPresentationDelay } = parsed(
    joinManifests([part('1', text)], { ...live(), latency: 'low' }),
  ).attributes;
  expect(suggestedPresentationDelay).toBe('PT3S');
});

test.each([
  ['when its encoder did, and the one before it says where it ended', '16:00:20', 'PT20S'],
  ['without a gap when the clock of whole seconds can not show one', '16:00:08.900', 'PT8S'],
  ['without a gap before the end of the part ahead', '16:00:05', 'PT8S'],
  ['without a gap before the part ahead began, by a clock that was set back', '15:00:00', 'PT8S'],
])('a live period starts %s', (_, began, start) => {
  const text = joinManifests([part('1', FOUR()), part('2', FOUR(began))], live());
  const ended = start === 'PT8S' ? {} : { duration: 'PT8S' };
  expect(periodsOf(text)).toEqual([
    { id: '1', start: 'PT0S', ...ended },
    { id: '2', start },
  ]);
});

test('an ended stream is static, without gaps, and as long as its parts', () => {
  const text = joinManifests([part('1', FOUR()), part('2', FOUR('16:00:20'))], ENDED);
  expect(parsed(text).attributes).toEqual({
    xmlns: 'urn:mpeg:dash:schema:mpd:2011',
    'xmlns:cenc': 'urn:mpeg:cenc:2013',
    profiles: 'urn:mpeg:dash:profile:isoff-live:2011',
    minBufferTime: 'PT2S',
    type: 'static',
    mediaPresentationDuration: 'PT16S',
    maxSegmentDuration: 'PT2S',
  });
  expect(periodsOf(text)).toEqual([
    { id: '1', duration: 'PT8S' },
    { id: '2', duration: 'PT8S' },
  ]);
  expect(text).not.toContain('UTCTiming');
});

test('a window leaves out what is older, under the same numbers and times, and whole parts', () => {
  const parts = [part('1', FOUR()), part('2', FOUR('16:00:08')), part('3', FOUR('16:00:16'))];
  const text = joinManifests(parts, live(9));
  expect(parsed(text).attributes.timeShiftBufferDepth).toBe('PT9S');
  expect(periodsOf(text).map(({ id }) => id)).toEqual(['2', '3']);
  const all = segmentsOf(joinManifests(parts, live()));
  expect(segmentsOf(text)).toEqual(all.filter(({ start, length }) => start + length > (24 - 9) * 90_000));
});

test('a live part is listed once each of its tracks has a segment, and a complete one without those that have none', () => {
  const beginning = written([], [[99_000, 45_000]], '16:00:08');
  expect(periodsOf(joinManifests([part('1', FOUR()), part('2', beginning)], live()))).toHaveLength(1);
  const behind = joinManifests(
    [part('1', FOUR()), part('2', beginning), part('3', FOUR('16:00:30'))],
    live(),
  );
  expect(periodsOf(behind).map(({ id }) => id)).toEqual(['1', '2', '3']);
  expect(behind).not.toContain('2/video');
  expect([FOUR(), beginning, ''].map(secondsOfManifest)).toEqual([[8, 7.9], [0.5, 0], []]);
});

test.each([[[]], [['', '']], [[written([], [])]], [[written([], [[0, 1]])]]])(
  'without a part to play there is nothing yet (%#)',
  (texts) => {
    const parts = texts.map((text, index) => part(String(index), text));
    expect(joinManifests(parts, live())).toBe('');
  },
);

test.each([
  ['<MPD', 'the MPD of 4-dash is not well-formed XML: see line 1'],
  ['<MPD/>', 'the MPD of 4-dash has no Period'],
])('the text %s is refused with the name of the part', (text, message) => {
  expect(() => joinManifests([part('4-dash', text)], live())).toThrow(message);
});

test('a day of live sound, whose segments differ in length, is joined within a window in less than a few seconds', () => {
  const audio = Array.from({ length: 43_200 }, (_, index) => [
    index * 180_000,
    index % 3 === 0 ? 178_560 : 180_480,
  ]);
  const text = joinManifests([part('1', written([[0, 180_000, 43_199]], audio))], live(30));
  expect(text.length).toBeLessThan(5000);
});

test('each window shows the segments that end in it, as the whole does, of any parts', () => {
  const some = fc.array(
    fc.record({
      from: fc.integer({ min: 0, max: 1000 }),
      lengths: fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 8 }),
      pause: fc.integer({ min: 0, max: 20 }),
    }),
    { minLength: 1, maxLength: 4 },
  );
  fc.assert(
    fc.property(some, fc.integer({ min: 1, max: 40 }), (runs, window) => {
      let clock = 0;
      const parts = runs.map(({ from, lengths, pause }, index) => {
        let time = from * 90_000;
        const s = lengths.map((length) => {
          const each = [time, length * 90_000];
          time += length * 90_000;
          return each;
        });
        const began = new Date(Date.UTC(2026, 10, 22, 12) + (clock - from) * 1000);
        clock += lengths.reduce((sum, length) => sum + length, 0) + pause;
        const text = written(s, s).replace('2026-11-22T16:00:00Z', began.toISOString());
        return part(String(index), text);
      });
      const all = segmentsOf(joinManifests(parts, live()));
      const end = Math.max(...all.map(({ start, length }) => start + length));
      const longest = Math.max(...all.map(({ length }) => length));
      const edge = end - Math.max(window * 90_000, 6 * 90_000 + longest);
      expect(segmentsOf(joinManifests(parts, live(window)))).toEqual(
        all.filter(({ start, length }) => start + length > edge),
      );
    }),
  );
});
