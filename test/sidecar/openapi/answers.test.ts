import request from 'supertest';
import { CPIX_DOCUMENT, SUPPLIED } from '../../../src/sidecar/openapi/examples';
import { CPIX_OF_TRACKS } from '../../support/cpix-of-tracks';
import { addressOf, OPERATIONS, objections, startDescribed } from '../../support/start-described';
import { API_KEY } from '../../support/start-sidecar';

interface Oddity {
  /** In place of the stream of the examples. */
  readonly streamid?: string;
  readonly query?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly type?: string;
  readonly body?: string | object;
}

/** What clients send that may be refused, and what is no matter: each to every operation. */
const ODDITIES: [what: string, oddity: Oddity][] = [
  ['nothing but what must be sent', {}],
  ['another stream', { streamid: 'absent' }],
  ['a stream id against the rule', { streamid: 'a..%2F.b' }],
  ['a stream id with an encoding that is none', { streamid: '%ff' }],
  ['a parameter that there is none of', { query: '?unknown=1' }],
  ['a dry run', { query: '?dryrun=true', body: SUPPLIED }],
  ['a dry run of no clear meaning', { query: '?dryrun=yes', body: SUPPLIED }],
  ['a parameter twice', { query: '?dryrun=true&dryrun=false&limit=1&limit=2&reveal=true&reveal=true' }],
  ['unknown lines to be kept', { query: '?keepunknown=true', body: SUPPLIED }],
  ['a limit out of bounds', { query: '?limit=1001' }],
  ['a cursor that there is none of', { query: '?cursor=gone.1' }],
  ['a prefix against the rule', { query: '?prefix=..' }],
  ['key material to be shown', { query: '?reveal=true', body: SUPPLIED }],
  ['the wish to wait for all packagers', { query: '?wait=1', body: SUPPLIED }],
  ['a wait without end', { query: '?wait=forever', body: SUPPLIED }],
  ['the wish to found the fleet', { query: '?found=true' }],
  ['an export', { query: '?as=cpix' }],
  ['an export that there is none of', { query: '?as=another&scheme=cens' }],
  ['no API key', { headers: { 'x-api-key': '' } }],
  ['a wrong API key', { headers: { 'x-api-key': 'wrong' } }],
  ['an entity tag of another file', { headers: { 'if-match': '"another"' }, body: SUPPLIED }],
  ['an entity tag without quotes', { headers: { 'if-match': 'another' }, body: SUPPLIED }],
  ['the wish for no file', { headers: { 'if-none-match': '*' }, body: SUPPLIED }],
  ['the wish for JSON', { headers: { accept: 'application/json' }, body: SUPPLIED }],
  ['the wish for text', { headers: { accept: 'text/plain' }, body: SUPPLIED }],
  ['the wish for what there is none of', { headers: { accept: 'image/png' }, body: SUPPLIED }],
  ['an empty object', { body: {} }],
  ['a list', { body: [] }],
  ['a field that there is none of', { body: { ...SUPPLIED, widevin: {}, stream: [] } }],
  ['fields of other types', { body: { cenc: 1, streams: 'x', groups: 7, value: [] } }],
  [
    'a batch of one that is at fault',
    { body: { streams: [{ streamid: '.a' }, 7, { streamid: 'b', cenc: {} }] } },
  ],
  ['a batch of groups at fault', { body: { groups: [7, { members: [] }, { smil: '<smil' }] } }],
  ['JSON that is none', { type: 'application/json', body: '{"cenc":' }],
  ['no JSON object', { type: 'application/json', body: '7' }],
  ['an empty body', { type: 'application/json', body: '' }],
  ['lines of a key file', { type: 'text/plain', body: 'vendor-tier: gold\nno line\n' }],
  ['a CPIX document', { query: '?laurl=https://a/', type: 'application/cpix+xml', body: CPIX_DOCUMENT }],
  ['a track that there is none of', { query: '?track=HD', type: 'application/xml', body: CPIX_DOCUMENT }],
  ['no CPIX document', { type: 'text/xml', body: '<CPIX' }],
  [
    'a batch of tracks',
    { body: { streams: [{ cpix: CPIX_OF_TRACKS, tracks: { SD: 'a', UHD: ['b', 7] } }, { tracks: [] }] } },
  ],
  ['a body of another type', { type: 'text/html', body: '<p>' }],
  ['a body in another encoding', { type: 'application/json; charset=utf-7', body: '{}' }],
  ['a compressed body', { type: 'application/json', headers: { 'content-encoding': 'gzip' }, body: '{}' }],
  [
    'a body of 70,000 bytes',
    { type: 'application/json', body: JSON.stringify({ cenc: 'x'.repeat(70_000) }) },
  ],
];

const NO_BODY = ['get', 'delete'];

it.each(OPERATIONS)(
  '$title answers nothing that its description does not tell of',
  async ({ method, path, operation }) => {
    const { sidecar } = await startDescribed();
    const statuses = new Set<number>();
    const names = operation.parameters.map(({ name }) => name);
    for (const [what, { streamid = 'news', query = '', headers = {}, type, body }] of ODDITIES) {
      const target = addressOf(path, streamid) + query;
      // HTTP itself answers 304 where nothing is said of it (RFC 9110 § 13.1.2: something is there).
      if (headers['if-none-match'] !== undefined && !names.includes('If-None-Match')) continue;
      const sent = request(sidecar.url)
        [method](target)
        .set({ 'x-api-key': API_KEY, ...headers });
      if (body !== undefined && !NO_BODY.includes(method))
        void sent.type(type ?? 'application/json').send(body);
      const answer = await sent.buffer(true);
      const told = operation.responses[answer.status];
      expect([what, answer.status, told === undefined]).toEqual([what, answer.status, false]);
      statuses.add(answer.status);
      const content = answer.type === '' ? undefined : told?.content?.[answer.type];
      expect([what, answer.type, content === undefined]).toEqual([
        what,
        answer.type,
        told?.content === undefined,
      ]);
      const given = answer.type === 'application/json' ? answer.body : answer.text;
      expect([what, content ? objections(content.schema, given) : []]).toEqual([what, []]);
      for (const name of ['etag', 'warning', 'retry-after', 'x-fleet-revision']) {
        const described = Object.keys(told?.headers ?? {}).map((header) => header.toLowerCase());
        const isSilent = answer.headers[name] !== undefined && !described.includes(name);
        expect([what, name, isSilent]).toEqual([what, name, false]);
      }
    }
    // It was no single refusal that answered all of them.
    expect(statuses.size).toBeGreaterThan(path.startsWith('/api') ? 2 : 0);
  },
);
