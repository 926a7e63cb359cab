import { API_KEY } from '../load';

/** What a share of an attack's connections does. */
export interface Part {
  readonly connections: number;
  /** What each sends when it is connected, one byte a character. */
  readonly opening: string;
  /** How often the opening is sent, at once: pipelined. */
  readonly times?: number;
  /** What each sends every second after that. */
  readonly drip?: string;
  readonly reads: 'all' | 'nothing' | 'a byte a second';
  /** Whether the opening is sent again with every answer. */
  readonly again?: boolean;
  /** Whether each keeps its own side open when the server has closed the other. */
  readonly halfOpen?: boolean;
}

/** What an upstream of the sidecar answers; see hostile-upstream.ts. */
export type UpstreamMode = 'gzip' | 'half' | 'drip';

export interface Attack {
  readonly name: string;
  readonly parts: readonly Part[];
  /** Whether the sidecar speaks HTTPS. */
  readonly secure: boolean;
  /** Set: the attack comes from the sidecar's upstreams. */
  readonly upstream?: UpstreamMode;
}

/** As many as the sidecar takes. */
const MOST = 512;

const head = (method: string, path: string, lines: readonly string[] = []) =>
  [`${method} ${path} HTTP/1.1`, 'Host: localhost', ...lines, '', ''].join('\r\n');
const wrongKey = `x-api-key: ${API_KEY}-and-no-other`;

/** The first bytes of a ClientHello whose record says that it has 512. */
const HALF_HELLO = `\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03${'r'.repeat(32)}\x20${'s'.repeat(32)}`;

const halves = (first: Omit<Part, 'connections'>, second: Omit<Part, 'connections'>): Part[] =>
  [first, second].map((part) => ({ ...part, connections: MOST / 2 }));
const all = (part: Omit<Part, 'connections'>): Part[] => [{ ...part, connections: MOST }];

/** The largest answer that takes no API key. */
const LARGEST = head('GET', '/docs/swagger-ui-bundle.js');

const PLAIN: Readonly<Record<string, readonly Part[]>> = {
  silent: all({ opening: '', reads: 'all' }),
  'half-head': all({ opening: 'GET / HTTP/1.1\r\n', reads: 'all' }),
  'dripping-head': all({
    opening: 'GET / HTTP/1.1\r\nHost: localhost\r\nX-Drip: ',
    drip: 'a',
    reads: 'all',
  }),
  refused: halves(
    { opening: 'NOT HTTP AT ALL\r\n\r\n', reads: 'nothing', halfOpen: true },
    {
      opening: head('GET', '/healthz', [`X-Large: ${'a'.repeat(20 * 1024)}`]),
      reads: 'nothing',
      halfOpen: true,
    },
  ),
  'body-never-comes': halves(
    { opening: head('POST', '/docs', ['Content-Length: 1000']), reads: 'all', halfOpen: true },
    {
      opening: head('POST', '/api/keyfile/x', [
        wrongKey,
        'Content-Type: application/json',
        'Content-Length: 1000',
      ]),
      reads: 'all',
      halfOpen: true,
    },
  ),
  unread: halves(
    { opening: LARGEST, reads: 'nothing' },
    { opening: head('GET', '/openapi.json'), reads: 'nothing' },
  ),
  idle: all({ opening: head('GET', '/healthz'), reads: 'all' }),
  'pipelined-few': [{ connections: 8, opening: LARGEST, times: 5000, reads: 'nothing' }],
  'pipelined-many': all({ opening: LARGEST, times: 400, reads: 'nothing' }),
  'pipelined-api': all({ opening: head('GET', '/api/keyfile/x'), times: 400, reads: 'all' }),
  'wrong-key': all({ opening: head('GET', '/api/keyfile/x', [wrongKey]), reads: 'all', again: true }),
  'slow-reader': all({ opening: LARGEST, reads: 'a byte a second' }),
};

/** Every attack of plain HTTP at once, which share the connections. */
function mixed(): Part[] {
  const share = MOST / Object.keys(PLAIN).length;
  return Object.values(PLAIN).flatMap((parts) =>
    parts.map((part) => ({ ...part, connections: Math.floor(share / parts.length) })),
  );
}

const plain = (name: string, parts: readonly Part[]): Attack => ({ name, parts, secure: false });
const fromUpstream = (upstream: UpstreamMode): Attack => ({
  name: `upstream-${upstream}`,
  parts: [],
  secure: false,
  upstream,
});

export const ATTACKS: readonly Attack[] = [
  ...Object.entries(PLAIN).map(([name, parts]) => plain(name, parts)),
  plain('mixed', mixed()),
  {
    name: 'tls-stalled',
    parts: halves({ opening: '', reads: 'all' }, { opening: HALF_HELLO, reads: 'all' }),
    secure: true,
  },
  fromUpstream('gzip'),
  fromUpstream('half'),
  fromUpstream('drip'),
];
